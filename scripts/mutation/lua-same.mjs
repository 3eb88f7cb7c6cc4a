// Mutants of the Lua scripts that change nothing: by file, what the line begins with, the change, and why.

const rows = [
  ["src/redis/claim-script.ts", "for i = 2, n + 1 do", "2 → 1", "the record never has the locks' value"],
  ["src/redis/claim-script.ts", "for i = 2, n + 1 do", "1 → 2", "behind the last lock nothing was read"],
  ["src/redis/claim-script.ts", "local fence, now =", "0 → 1", "the clock is read before `now`"],
  ["src/redis/claim-script.ts", "local fence, now =", "0 → -1", "the clock is read before `now`"],
  ["src/redis/claim-script.ts", 'for i = 1, ttl == "0"', "0 → -1", "neither loop has a step"],
  [
    "src/redis/claim-script.ts",
    "for i = n + 2, #KEYS do fence = math.max",
    "0 → 1",
    "every fence is greater",
  ],
  [
    "src/redis/claim-script.ts",
    "for i = n + 2, #KEYS do fence = math.max",
    "0 → -1",
    "every fence is greater",
  ],
  ["src/redis/claim-script.ts", "local drawn =", "0 → 1", "every fence is greater"],
  ["src/redis/claim-script.ts", "local drawn =", "0 → -1", "every fence is greater"],
];

/**
 * Whether a mutant is known to change nothing.
 *
 * @param {string} file
 * @param {string} line the line of the script, without the change
 * @param {{ from: string, to: string }} mutant
 */
export function changesNothing(file, line, { from, to }) {
  return rows.some(
    ([where, begin, change]) => where === file && line.startsWith(begin) && change === `${from} → ${to}`,
  );
}
