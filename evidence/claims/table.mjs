// The table of docs/choosing.md that compares this package with others, and what was observed. Pure functions of texts.

/** @typedef {{ package: string, peer: string, ours: string }} Claim a row of the page: the package, and its two cells */

/**
 * The claims of the page: the rows below the given heading. A row without a package belongs to that of the row above.
 *
 * @returns {Claim[]}
 */
export function claimsOf(page, heading = "## Compared with other packages") {
  const [, section = ""] = page.split(`${heading}\n`);
  const rows = section
    .split(/\n## /)[0]
    .split("\n")
    .filter((line) => line.startsWith("| "))
    .map((line) =>
      line
        .split("|")
        .slice(1, -1)
        .map((cell) => cell.trim()),
    )
    // Without the table's head and the line below it.
    .slice(2);
  let name = "";
  return rows.map(([first, peer, ours]) => {
    name = first || name;
    return { package: name, peer, ours };
  });
}

/**
 * What the page says and no program shows, and what a program shows that the page does not say.
 *
 * @param {Claim[]} claims
 * @param {Claim[]} rows the programs
 * @returns {string[]}
 */
export function differences(claims, rows) {
  const textOf = (claim) => `${claim.package}: ${claim.peer} | ${claim.ours}`;
  const claimed = claims.map(textOf);
  const shown = rows.map(textOf);
  return [
    ...claimed
      .filter((text) => !shown.includes(text))
      .map((text) => `no program has the page's row "${text}"`),
    ...shown.filter((text) => !claimed.includes(text)).map((text) => `the page has no row "${text}"`),
  ];
}

/**
 * What was seen of one side of a row.
 *
 * @typedef {{ text: string, holds: boolean }} Observation `holds`: as the page says
 */

/**
 * The lines of the observations that contradict the page.
 *
 * @param {{ row: Claim, peer: Observation, ours: Observation }[]} results
 * @returns {string[]}
 */
export function contradictions(results) {
  return results.flatMap(({ row, peer, ours }) => [
    ...(peer.holds ? [] : [`${row.package}: the page says "${row.peer}", observed: ${peer.text}`]),
    ...(ours.holds ? [] : [`redlock-edge: the page says "${row.ours}", observed: ${ours.text}`]),
  ]);
}
