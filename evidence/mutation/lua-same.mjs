// Mutants of the Lua scripts that change nothing: the file, the changed line, and why no test can notice it.

const cell = "src/redis/cell.lua";
const claim = "src/redis/claim.lua";
const slots = "src/sync/internal/slot.lua";
const interval = "src/sync/internal/interval.lua";
const release = "src/sync/internal/free-synchronizer.lua";
const members = "src/sync/internal/member.lua";
const queue = "src/sync/internal/queue.lua";
const rows = [
  [
    claim,
    'if not old or select("#", ...) == -1 then run("SET", key, value, "PX", ms) end',
    "SET with GET alone fails only where GET does, too",
  ],
  [claim, "for i = 1, n + 1 do", "the record never has the locks' value"],
  [claim, "for i = 2, n + 2 do", "behind the last lock nothing was read"],
  [claim, "local fence, now = least, 1", "the clock is read before `now`"],
  [claim, "local fence, now = least, -1", "the clock is read before `now`"],
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
    "src/sync/internal/arrival.lua",
    "ids[#ids + 1], added[#added + 1], added[#added + 2] = id, id, 2",
    "only the field is read",
  ],
  [
    "src/sync/internal/arrival.lua",
    "ids[#ids + 1], added[#added + 1], added[#added + 2] = id, id, 0",
    "only the field is read",
  ],
  [slots, 'local own, slots, remaining = 0, "", 1', "every ttl is longer"],
  [slots, 'local own, slots, remaining = 0, "", -1', "every ttl is longer"],
  [
    slots,
    'if own > 1 and span > 0 then remaining = redis.call("PTTL", KEYS[own]) end',
    "the first key is the limit's",
  ],
  [interval, 'if KEYS[4] then redis.call("SET", KEYS[4], 2, "PX", ms) end', "only whether it exists is read"],
  [interval, 'if KEYS[4] then redis.call("SET", KEYS[4], 0, "PX", ms) end', "only whether it exists is read"],
  [interval, "if number > tonumber(run or -1) then", "the first confirmation has the number 1"],
  [interval, "fence = math.max(tonumber(found[3] or 1), fence)", "every fence is greater"],
  [interval, "fence = math.max(tonumber(found[3] or -1), fence)", "every fence is greater"],
  [members, "return tonumber(found[2] or 1) - now, found[1]", "it is long past, as 0 is"],
  [members, "return tonumber(found[2] or -1) - now, found[1]", "it is long past, as 0 is"],
  [
    members,
    'local subscribers = free and redis.call("PUBSUB", "NUMSUB", channel)[2] or -1',
    "it is only compared with 0",
  ],
  [
    members,
    'local found = tonumber(redis.call("ZSCORE", KEYS[1], member) or 1) > now',
    "it is long past, as 0 is",
  ],
  [
    members,
    'local found = tonumber(redis.call("ZSCORE", KEYS[1], member) or -1) > now',
    "it is long past, as 0 is",
  ],
  [
    members,
    'for i = 2, 1 + tombstones do redis.call("SET", KEYS[i], found and "freed" or 2, "PX", ttl) end',
    "it is only compared with `freed`",
  ],
  [
    members,
    'for i = 2, 1 + tombstones do redis.call("SET", KEYS[i], found and "freed" or 0, "PX", ttl) end',
    "it is only compared with `freed`",
  ],
  [members, "elseif found and ttl > 1 then", "every ttl but 0 is longer"],
  [
    members,
    'if tonumber(redis.call("ZSCORE", KEYS[1], member) or 1) > now then return {member} end',
    "it is long past, as 0 is",
  ],
  [
    members,
    'if tonumber(redis.call("ZSCORE", KEYS[1], member) or -1) > now then return {member} end',
    "it is long past, as 0 is",
  ],
  [members, "local retryAfter = -1", "it is only compared with 0"],
  [
    members,
    "if remaining >= 0 and string.sub(other, from) ~= string.sub(member, from) then retryAfter = remaining end",
    "0 ms of it are none",
  ],
  [
    members,
    "if remaining > -1 and string.sub(other, from) ~= string.sub(member, from) then retryAfter = remaining end",
    "0 ms of it are none",
  ],
  [
    members,
    'if retryAfter > 0 and redis.call("ZSCORE", KEYS[1], member) then retryAfter = -1 end',
    "it is only compared with 0",
  ],
  [queue, "if not first or other <= first then first = other end", "the tickets differ"],
  [queue, "if ttl > 1 then", "every ttl but 0 is longer"],
  [
    queue,
    'redis.call("SET", KEYS[3], found[1] == value and "freed" or 2, "PX", expiry)',
    "it is only compared with `freed`",
  ],
  [
    queue,
    'redis.call("SET", KEYS[3], found[1] == value and "freed" or 0, "PX", expiry)',
    "it is only compared with `freed`",
  ],
  [queue, 'redis.call("SET", KEYS[4], 2, "PX", retention)', "only whether it exists is read"],
  [queue, 'redis.call("SET", KEYS[4], 0, "PX", retention)', "only whether it exists is read"],
  [queue, "local live, ahead, latest, own = {}, 0, 1, now + expiry", "every expiry is later"],
  [queue, "local live, ahead, latest, own = {}, 0, -1, now + expiry", "every expiry is later"],
  [queue, "local left = tonumber(ends or 1) - now", "it is long past, as 0 is"],
  [queue, "local left = tonumber(ends or -1) - now", "it is long past, as 0 is"],
  [queue, "again = -1", "it is only compared with 0"],
  [
    queue,
    'if calling then mark = "/" .. string.format("%.0f", now + again) .. string.sub(calling, 0, 1) .. ticket end',
    "a text begins at its first character either way",
  ],
  [queue, "if other <= ticket then ahead = ahead + 1 end", "the tickets differ"],
  [queue, "local acquires = ttl > 1 and not holder and ahead == 0", "every ttl but 0 is longer"],
  [queue, "if ttl > 1 and not holder and ahead > 0 and grace then", "every ttl but 0 is longer"],
  [
    queue,
    "if rollsBack or ttl > 1 and expiry > 0 and not acquires then live[#live + 1] = {ticket, own} end",
    "every ttl but 0 is longer",
  ],
  [
    queue,
    "if rollsBack or ttl > 0 and expiry > 1 and not acquires then live[#live + 1] = {ticket, own} end",
    "every expiry but 0 is longer",
  ],
  [queue, "if ttl > 1 then return {0, ahead, calls, again} end", "every ttl but 0 is longer"],
  [queue, 'redis.call("SET", KEYS[3], 2, "PX", expiry)', "only whether it exists is read"],
  [queue, 'redis.call("SET", KEYS[3], 0, "PX", expiry)', "only whether it exists is read"],
  [
    cell,
    "tags = tags .. string.sub(found[i], 0, from - 1)",
    "a text begins at its first character either way",
  ],
  [
    cell,
    "local first, last = (i - 1) * (from + 1) + 1, i * (from - 1)",
    "tags that differ also do so in their last characters",
  ],
  [
    cell,
    "local first, last = (i - 1) * (from - 0) + 1, i * (from - 1)",
    "tags that differ also do so in their last characters",
  ],
  [
    cell,
    "local first, last = (i - 1) * (from - 1) + 2, i * (from - 1)",
    "tags that differ also do so in their last characters",
  ],
  [
    cell,
    'if KEYS[n + 1] then redis.call("SET", KEYS[n + 1], own == n and "f" or 2, "PX", ttl) end',
    "it is only compared with `f`",
  ],
  [
    cell,
    'if KEYS[n + 1] then redis.call("SET", KEYS[n + 1], own == n and "f" or 0, "PX", ttl) end',
    "it is only compared with `f`",
  ],
  [
    cell,
    'return {0, other and redis.call("PTTL", KEYS[other]) or -4, other and found[other] or ""}',
    "a time below 0 says that nothing is known",
  ],
  [
    cell,
    'return {0, other and redis.call("PTTL", KEYS[other]) or -2, other and found[other] or ""}',
    "a time below 0 says that nothing is known",
  ],
  [cell, "for i = n + 1, #KEYS do", "no tombstone is there, and every fence is greater"],
  [
    cell,
    'fence = math.max(fence, tonumber(found[i] or -1) + (op == "acquire" and 1 or 0))',
    "every fence is greater",
  ],
  [cell, 'local isShared = string.sub(text, 0, 1) == "s"', "a text begins at its first character either way"],
  [
    cell,
    "local joins = isShared and tonumber(string.sub(text, 26, 33)) or 1",
    "any number is one to begin with",
  ],
  [
    cell,
    "local joins = isShared and tonumber(string.sub(text, 26, 33)) or -1",
    "any number is one to begin with",
  ],
  [cell, "tags = tags .. string.sub(text, 0, from - 1)", "a text begins at its first character either way"],
  [cell, "return {value, fence, from >= 1 and tags or nil}", "tags of length 0 are read as none"],
  [cell, "return {value, fence, from > 0 and tags or nil}", "tags of length 0 are read as none"],
  [cell, "return {value, fence, from > 2 and tags or nil}", "from is 1, or behind a tag"],
  [cell, 'text = text and ""', "the tags in this reply are not read"],
  [release, "return {nonce, had and 1 or -1, at, remaining}", "only whether it is 1 is read"],
  [release, 'local limit = tonumber(redis.call("GET", key) or -1)', "there are more keys"],
];

const changedLine = ({ line, source }) => source.split("\n")[line - 1].trim();

/**
 * Whether a mutant is known to change nothing.
 *
 * @param {string} file
 * @param {{ line: number, source: string }} mutant
 */
export function changesNothing(file, mutant) {
  return rows.some(([where, text]) => where === file && text === changedLine(mutant));
}

/** The lines above that none of the file's mutants has any more. */
export function staleLines(file, mutants) {
  const lines = new Set(mutants.map(changedLine));
  return rows.flatMap(([where, text]) => (where === file && !lines.has(text) ? [text] : []));
}
