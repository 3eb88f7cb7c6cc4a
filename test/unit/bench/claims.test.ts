import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { rows } from "../../../evidence/claims/rows.mjs";
import { claimsOf, contradictions, differences } from "../../../evidence/claims/table.mjs";

const page = `# Page

| another | table |
| --- | --- |
| a | b |

## Compared with other packages

| package | observed | here |
| --- | --- | --- |
| one 1.0.0 | loses | keeps |
| | hangs | ends |
| two 2.0.0 | throws | returns |

## Next

| c | d | e |
`;
const claims = [
  { package: "one 1.0.0", peer: "loses", ours: "keeps" },
  { package: "one 1.0.0", peer: "hangs", ours: "ends" },
  { package: "two 2.0.0", peer: "throws", ours: "returns" },
];

test("the claims of a page are the rows below its heading, each with its package", () => {
  expect(claimsOf(page)).toEqual(claims);
  expect(claimsOf("# Page without the heading")).toEqual([]);
});

test("a row without a program and a program without a row are differences", () => {
  expect(differences(claims, claims)).toEqual([]);
  const changed = { ...claims[2]!, ours: "returns late" };
  expect(differences(claims, [claims[0]!, claims[1]!, changed])).toEqual([
    `no program has the page's row "two 2.0.0: throws | returns"`,
    `the page has no row "two 2.0.0: throws | returns late"`,
  ]);
});

test("an observation that is not as the page says is a contradiction, on either side", () => {
  const [row] = claims;
  const seen = (text: string, holds: boolean) => ({ text, holds });
  const observed = (peerHolds: boolean, oursHold: boolean) =>
    contradictions([{ row: row!, peer: seen("kept", peerHolds), ours: seen("lost", oursHold) }]);
  const peerIsWrong = `one 1.0.0: the page says "loses", observed: kept`;
  const oursIsWrong = `redlock-edge: the page says "keeps", observed: lost`;
  expect(observed(true, true)).toEqual([]);
  expect(observed(false, true)).toEqual([peerIsWrong]);
  expect(observed(true, false)).toEqual([oursIsWrong]);
  expect(observed(false, false)).toEqual([peerIsWrong, oursIsWrong]);
});

test("docs/choosing.md has the rows that `node evidence/claims.mjs` shows, and no others", () => {
  expect(rows.length).toBeGreaterThan(15);
  expect(differences(claimsOf(readFileSync("docs/choosing.md", "utf8")), rows)).toEqual([]);
});
