// Mutants of the Lua scripts that change nothing: by file, the changed line, and why no test can notice it.

const rows = {
  "src/sync/internal/slot.lua": [
    ['local own, slots, remaining = 0, "", 1', "every ttl is longer"],
    ['local own, slots, remaining = 0, "", -1', "every ttl is longer"],
    [
      'if own > 1 and span > 0 then remaining = redis.call("PTTL", KEYS[own]) end',
      "the first key is the limit's",
    ],
  ],
  "src/sync/internal/interval.lua": [
    ["if number > tonumber(confirmed or -1) then", "the first confirmation has the number 1"],
    ["fence = math.max(tonumber(found[3] or -1), fence)", "every fence is greater"],
  ],
  "src/sync/internal/free-synchronizer.lua": [
    ['local limit = tonumber(redis.call("GET", key) or 1)', "there are more keys"],
    ['local limit = tonumber(redis.call("GET", key) or -1)', "there are more keys"],
  ],
  "src/sync/internal/member.lua": [
    ["return tonumber(found[2] or 1) - now, found[1]", "it is long past, as 0 is"],
    ["return tonumber(found[2] or -1) - now, found[1]", "it is long past, as 0 is"],
    [
      'local subscribers = free and redis.call("PUBSUB", "NUMSUB", channel)[2] or -1',
      "it is only compared with 0",
    ],
    ['local found = tonumber(redis.call("ZSCORE", KEYS[1], member) or 1) > now', "it is long past, as 0 is"],
    ['local found = tonumber(redis.call("ZSCORE", KEYS[1], member) or -1) > now', "it is long past, as 0 is"],
    [
      'if tonumber(redis.call("ZSCORE", KEYS[1], member) or 1) > now then return {member} end',
      "it is long past, as 0 is",
    ],
    [
      'if tonumber(redis.call("ZSCORE", KEYS[1], member) or -1) > now then return {member} end',
      "it is long past, as 0 is",
    ],
    ["local retryAfter = -1", "it is only compared with 0"],
    [
      "if remaining >= 0 and string.sub(other, from) ~= string.sub(member, from) then retryAfter = remaining end",
      "0 ms of it are none",
    ],
    [
      "if remaining > -1 and string.sub(other, from) ~= string.sub(member, from) then retryAfter = remaining end",
      "0 ms of it are none",
    ],
    ['if retryAfter >= 0 and redis.call("ZSCORE", KEYS[1], member) then retryAfter = 0 end', "0 becomes 0"],
    ['if retryAfter > -1 and redis.call("ZSCORE", KEYS[1], member) then retryAfter = 0 end', "0 becomes 0"],
    [
      'if retryAfter > 0 and redis.call("ZSCORE", KEYS[1], member) then retryAfter = -1 end',
      "it is only compared with 0",
    ],
  ],
  "src/sync/internal/queue.lua": [
    ["if not first or other <= first then first = other end", "the tickets differ"],
    ["local live, ahead, latest, own = {}, 0, 1, now + expiry", "every expiry is later"],
    ["local live, ahead, latest, own = {}, 0, -1, now + expiry", "every expiry is later"],
    ["local left = tonumber(ends or 1) - now", "it is long past, as 0 is"],
    ["local left = tonumber(ends or -1) - now", "it is long past, as 0 is"],
    ["again = -1", "it is only compared with 0"],
    [
      'if calling then mark = "/" .. string.format("%.0f", now + again) .. string.sub(calling, 0, 1) .. ticket end',
      "a text begins at its first character either way",
    ],
    ["if other <= ticket then ahead = ahead + 1 end", "the tickets differ"],
  ],
};

const changedLine = ({ line, source }) => source.split("\n")[line - 1].trim();

/**
 * Whether a mutant is known to change nothing.
 *
 * @param {string} file
 * @param {{ line: number, source: string }} mutant
 */
export function changesNothing(file, mutant) {
  return (rows[file] ?? []).some(([text]) => text === changedLine(mutant));
}

/** The lines above that none of the file's mutants has any more. */
export function staleLines(file, mutants) {
  const lines = new Set(mutants.map(changedLine));
  return (rows[file] ?? []).flatMap(([text]) => (lines.has(text) ? [] : [text]));
}
