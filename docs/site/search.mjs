// What the search finds: guides and the API reference, a page before its sections, an option by its name, and the words of
// the docs for those of a question. Rows of tables that begin with a name in code have an address for that.

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

/**
 * The sections of a page, by their headings, as MiniSearch gets them. A row with an address is a section of its own.
 *
 * @param {string} markdown
 * @param {(heading: string) => string} anchorOf
 * @returns {{ anchor: string, titles: string[], text: string }[]}
 */
export function sectionsOf(markdown, anchorOf) {
  const taken = new Set();
  const free = (anchor) => {
    let name = anchor;
    for (let count = 1; taken.has(name.toLowerCase()); count++) name = `${anchor}-${count}`;
    taken.add(name.toLowerCase());
    return name;
  };
  // Headings have their addresses before rows.
  const named = blocksOf(markdown).map((block) => ({
    ...block,
    anchor: block.level && free(anchorOf(block.title)),
  }));
  const sections = [];
  const path = [];
  for (const { level, title, anchor, lines } of named) {
    if (level === undefined) continue;
    path.length = level - 1;
    path.push(title);
    // A heading may leave out a level.
    const titles = path.filter((each) => each !== undefined);
    const section = { anchor, titles, text: "" };
    const rows = [];
    section.text = lines
      .filter((line) => {
        const [, name, cells] = /^\| `([\w.-]+)` +\|(.*)$/.exec(line) ?? [];
        if (name === undefined || taken.has(name.toLowerCase())) return true;
        taken.add(name.toLowerCase());
        rows.push({ anchor: name, titles: [...titles, name], text: withoutMarks(cells) });
        return false;
      })
      .map(withoutMarks)
      .join("\n");
    sections.push(section, ...rows);
  }
  return sections;
}

/** Of a module's sections, the module and its exports with their members. Each stands directly below its owner. */
export function exportsOf(sections) {
  const parts =
    /^(Accessors|Call Signature|Classes|Constructors?|Default|Events|Examples?|Extended by|Extends|Functions|Get Signature|Implementation of|Implements|Index Signature|Inherited from|Interfaces|Methods|Overrides|Parameters|Properties|References|Remarks|Returns|See|Throws|Type Aliases|Type Declaration|Type Parameters|Union Members|Variables)$/;
  return sections
    .filter(({ titles }) => !parts.test(titles.at(-1)))
    .map((section) => ({ ...section, titles: section.titles.filter((title) => !parts.test(title)) }));
}

/** Headings, each with the lines below it. Comments of programs are none. */
function blocksOf(markdown) {
  const blocks = [{ level: undefined, title: "", lines: [] }];
  let fence;
  for (const line of markdown.split("\n")) {
    const [marks] = /^\s*`{3,}/.exec(line) ?? [];
    if (marks !== undefined && (fence === undefined || marks.trim() === fence)) {
      fence = fence === undefined ? marks.trim() : undefined;
      continue;
    }
    const [, level, title] = (fence === undefined && /^(#{1,6}) (.*)$/.exec(line)) || [];
    if (level === undefined) blocks.at(-1).lines.push(line);
    else blocks.push({ level: level.length, title: withoutMarks(title), lines: [] });
  }
  return blocks;
}

function withoutMarks(line) {
  return line
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replace(/<\/?[a-z][^>]*>/g, "")
    .replace(/\\([<>{}[\]_|*])/g, "$1")
    .replace(/[`*|]|^[\s>-]+|-{3,}/g, " ")
    .trim();
}

/** Options of MiniSearch. These functions also run in the browser, without what is around them. */
export const miniSearch = {
  options: {
    /**
     * "fence" finds "fencing", and "webhook" "webhooks". Words that stand everywhere find nothing. A word of a question
     * (which belongs to no field) finds the words of the docs for it.
     */
    processTerm(term, field) {
      const stem = (word) => word.toLowerCase().replace(/^(.{3,}?)(ing?|ed|es?|s)$/, "$1");
      const common =
        /^(an?|and|are|as|at|be|but|by|can|does?|for|from|happen(s|ed)?|has|have|how|i|if|in|into|is|it|its|me|my|not?|of|on|or|our|should|so|than|that|the|their|then|there|this|to|use|used|using|want|was|what|when|where|which|who|why|will|with|you|your)$/i;
      if (common.test(term)) return null;
      if (field !== undefined) return stem(term);
      const synonyms = [
        "agent chat > conversation mailbox",
        "alternative compare comparison versus vs > neighbours choosing",
        "budget cheap expensive price pricing > cost upstash",
        "crash crashed freeze frozen gc pause > frozen fencing",
        "crontab daily hourly interval schedule scheduled scheduler > cron",
        "dedupe deduplicate duplicate duplicates twice > once idempotent",
        "down failover fails failure offline unavailable unreachable > outage quorumerror",
        "elect election elected leader primary > singleton",
        "expired expiration expiry expires > ttl lost",
        "fake jest mock mocking stub unit vitest > test memoryendpoint",
        "holder owner owns > holds",
        "install installation quickstart setup tutorial > started npm",
        "lease timeout > ttl",
        "migrate switch upgrade > move",
        "mutex mutual exclusion > lock",
        "mysql sql sqlite > postgres d1 inbox",
        "race stampede > once",
        "release unlock > hold without",
        "renew renewal refresh > extend refresh",
        "semaphore throttle throttling > concurrency semaphore",
        "stuck deadlock orphaned > holds free",
        "test tests testing > memoryendpoint",
      ];
      const row = synonyms.find((each) => each.split(" > ")[0].split(" ").includes(term.toLowerCase()));
      return [stem(term), ...(row?.split(" > ")[1].split(" ") ?? []).map(stem)];
    },
  },
  searchOptions: {
    // A short word with another letter is another word: "lock" is no "clock".
    fuzzy: (term) => (term.length > 6 ? 0.2 : false),
    prefix: (term, index, terms) => term.length > 3 || index === terms.length - 1,
    boost: { title: 4, text: 2, titles: 1 },
    /** A page before its sections, guides before examples and reference, and those before the pages of contributors. */
    boostDocument(id, _term, { titles }) {
      const page = titles.length === 0 ? 2 : 1;
      if (/\/(CHANGELOG|CONTRIBUTING|SECURITY|contents|internals\/.*)\.html|\/bench\//.test(id))
        return page * 0.2;
      return /\/(api|examples|local|lock-server|worker)\//.test(id) ? page * 0.5 : page;
    },
  },
};
