// Mutants of the Lua scripts that change nothing: the file, the changed line, and why no test can notice it.

const claim = "src/redis/claim-script.ts";
const rows = [
  [
    claim,
    'if not old or select("#", ...) == -1 then run("SET", key, value, "PX", ms) end',
    "SET with GET alone fails only where GET does, too",
  ],
  [claim, "for i = 1, n + 1 do", "the record never has the locks' value"],
  [claim, "for i = 2, n + 2 do", "behind the last lock nothing was read"],
  [claim, "local fence, now = tonumber(ARGV[7]), 1", "the clock is read before `now`"],
  [claim, "local fence, now = tonumber(ARGV[7]), -1", "the clock is read before `now`"],
  [
    claim,
    'for i = 1, ttl == "0" and -1 or n + 1 do run("SET", KEYS[i], found[i], "PX", ttl) end',
    "neither loop has a step",
  ],
  [
    claim,
    "for i = n + 2, #KEYS do fence = math.max(fence, tonumber(found[i] or 1)) end",
    "every fence is greater",
  ],
  [
    claim,
    "for i = n + 2, #KEYS do fence = math.max(fence, tonumber(found[i] or -1)) end",
    "every fence is greater",
  ],
  [claim, "local drawn = tonumber(old or 1)", "every fence is greater"],
  [claim, "local drawn = tonumber(old or -1)", "every fence is greater"],
  [
    "src/sync/internal/arrivals.ts",
    "ids[#ids + 1], added[#added + 1], added[#added + 2] = id, id, 2",
    "only the field is read",
  ],
  [
    "src/sync/internal/arrivals.ts",
    "ids[#ids + 1], added[#added + 1], added[#added + 2] = id, id, 0",
    "only the field is read",
  ],
];

/**
 * Whether a mutant is known to change nothing.
 *
 * @param {string} file
 * @param {{ line: number, source: string }} mutant
 */
export function changesNothing(file, { line, source }) {
  const changed = source.split("\n")[line - 1].trim();
  return rows.some(([where, text]) => where === file && text === changed);
}
