// What the search finds first: a page before its sections, and an option by its name. Rows of tables that begin with a name in
// code have an address for that.

/** Gives such rows an `id`, unless a heading, or a row above, has it. */
export function addressRows(markdown) {
  markdown.core.ruler.push("rows", ({ tokens }) => {
    const taken = new Set(tokens.map((token) => token.attrGet("id")?.toLowerCase()));
    for (const [index, row] of tokens.entries()) {
      const name = row.type === "tr_open" ? nameOf(tokens[index + 2]) : undefined;
      if (name === undefined || taken.has(name.toLowerCase())) continue;
      row.attrSet("id", name);
      taken.add(name.toLowerCase());
    }
  });
}

/** The name that is all of a cell. */
function nameOf({ children }) {
  const [first, ...others] = children ?? [];
  return first?.type === "code_inline" && others.length === 0
    ? /^[\w.-]+$/.exec(first.content)?.[0]
    : undefined;
}

/** A page in which such rows stand under headings of their own, at the end of their section: the search knows no others. */
export function rowsAsSections(html) {
  const sections = html.split(/(?=<h[1-6] )/).map((section) => {
    const rows = [];
    const rest = section.replace(
      /<tr id="(.+?)">\s*<td><code>.+?<\/code><\/td>([\s\S]*?)<\/tr>/g,
      (_, id, cells) => {
        rows.push(`<h6>${id} <a href="#${id}"></a></h6>${cells}`);
        return "";
      },
    );
    return rest + rows.join("");
  });
  return sections.join("");
}

/** Options of MiniSearch. These functions also run in the browser, without what is around them. */
export const miniSearch = {
  options: {
    // "fence" finds "fencing", and "webhook" "webhooks".
    processTerm: (term) => term.toLowerCase().replace(/^(.{3,}?)(ing?|es?|s)$/, "$1"),
  },
  searchOptions: {
    boostDocument: (_id, _term, { titles }) => (titles.length === 0 ? 2 : 1),
  },
};
