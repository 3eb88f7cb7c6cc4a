-- All operations on a cell at one endpoint: one value at n keys, all or none.
--
-- KEYS: the n keys; then the tombstone, if there is one; then the fence counters, if there are any.
--
-- ARGV:
-- 1. the operation:
--    `acquire` the keys, unless one of them has another value or the tombstone exists;
--    `restore` them: like `acquire`, but it draws no fence;
--    `extend` them if all have the value, and never create one (ttl 0 only checks);
--    `release` those that have the value, and leave a tombstone for `ttl` if one is named
-- 2. the value
-- 3. the character at which the comparison of values begins: 1 compares whole values, a higher number compares owners,
--    and the part before that character is the tag of a handle
-- 4. n
-- 5. ttl in ms
-- 6. the value to write, or for `release` the tags to release, concatenated
-- 7. the lowest fence: `acquire` draws one more than the largest counter, or the lowest fence if that is larger;
--    `restore` and `extend` raise the counters to it
-- 8. for how many ms a counter outlives the moment that its number names
--
-- Replies:
-- {value, fence}: done. Where owners are compared, the tags that are stored now follow. The value is unguessable, so no
--    client in between can invent this reply
-- {0, ms until the key in the way expires, its value}: refused
-- `release`: {0}: the value was not there; {0, tags}: the owner has it under other tags (`-` for a key without it), and
--    nothing was deleted
--
-- Executing it twice does no more than executing it once. Numbers are printed with %.0f: Lua would write 1.79e+12.

local op, value, from, n, ttl = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
-- MGET finds nothing at a key of another type. SET with GET fails there, with Redis's own error. What the script has
-- written before is left to the rollback.
local found = redis.call("MGET", unpack(KEYS))
local mine, own, other, tags = {}, 0, nil, ""
for i = 1, n do
  if found[i] and string.sub(found[i], from) == string.sub(value, from) then
    mine[#mine + 1], own = i, own + 1
    tags = tags .. string.sub(found[i], 1, from - 1)
  else
    other = found[i] and i or other
    tags = tags .. string.rep("-", from - 1)
  end
end
if op == "release" then
  -- An earlier execution of this release found everything: the same reply again.
  if found[n + 1] == value then return {value} end
  -- A late release names tags that another handle of the owner has replaced since, because it relies on the value.
  for _, i in ipairs(mine) do
    local first, last = (i - 1) * (from - 1) + 1, i * (from - 1)
    if string.sub(tags, first, last) ~= string.sub(ARGV[6], first, last) then return {0, tags} end
  end
  for _, i in ipairs(mine) do redis.call("DEL", KEYS[i]) end
  -- All that resume one lock share its tombstone: it says whose value was found.
  if KEYS[n + 1] then redis.call("SET", KEYS[n + 1], own == n and value or found[n + 1] or 1, "PX", ttl) end
  return {own == n and value or 0}
end
if found[n + 1] or other or (op == "extend" and own < n) then
  return {0, other and redis.call("PTTL", KEYS[other]) or -3, other and found[other] or ""}
end
local fence, kept = tonumber(ARGV[7]), tonumber(ARGV[8])
for i = n + 2, #KEYS do
  fence = math.max(fence, tonumber(found[i] or 0) + (op == "acquire" and 1 or 0))
end
if #KEYS > n + 1 then
  -- A counter expires by this endpoint's clock, and not before that clock has passed the counter's number: a client
  -- whose clock is ahead draws a fence of the future, which must be remembered until it is the past.
  local time = redis.call("TIME")
  kept = kept + math.max(0, fence - time[1] * 1e3 - math.floor(time[2] / 1e3))
end
fence = string.format("%.0f", fence)
for i = n + 2, #KEYS do
  redis.call("SET", KEYS[i], fence, "PX", string.format("%.0f", kept), "GET")
end
tags = ""
for i = 1, n do
  local text = found[i]
  if ttl == 0 then
    text = text or ""
  elseif not text or op == "extend" and from == 1 then
    -- Only an `extend` of a whole value shortens a ttl.
    text = ARGV[6]
    redis.call("SET", KEYS[i], text, "PX", ttl, "GET")
  else
    -- The owner has it already. Where this is another handle of it, both rely on the value now, so neither may roll it
    -- back as exactly its own: the tag becomes one that is nobody's nonce, and a new one each time.
    local isShared = string.sub(text, 1, 1) == "s"
    if text ~= value and not (isShared and op == "extend") then
      local joins = isShared and tonumber(string.sub(text, 26, 33)) or 0
      text = "s" .. string.sub(text, 2, 25) .. string.format("%08.0f", (joins + 1) % 1e8) .. string.sub(value, from)
    end
    -- Another handle may rely on the longer ttl, and an `acquire` that is executed a second time, late, must not undo
    -- an extension.
    redis.call("SET", KEYS[i], text, "PX", math.max(redis.call("PTTL", KEYS[i]), ttl))
  end
  tags = tags .. string.sub(text, 1, from - 1)
end
return {value, fence, from > 1 and tags or nil}
