-- Compare-and-set on n keys at one endpoint: the keys that a lock or a run claims, keeps and ends.
--
-- KEYS: the n keys, then the tombstone, if there is one, then the fence counters, if there are any.
--
-- ARGV:
-- 1. the operation:
--    `claim`: writes the next values, all or none. Each key must be free or have its next value already, and there must be
--    no tombstone. Draws a fence: one more than the largest counter, or the lowest fence if that is larger.
--    `prove`: does that, too, and deletes the tombstone, which does not exist. For an endpoint that has not deleted anything
--    for this process yet: one that refuses that could never release its grants. There must be a tombstone's name.
--    `keep`: writes the next values, all or none. Each key must have its expected value, or its next value already, and
--    there must be no tombstone. Raises the counters to the lowest fence. ttl 0 only checks.
--    `end`: for each key by itself, writes the next value or deletes the key, if it has its expected value. Leaves the
--    tombstone
-- 2. the token of the claim. It is unguessable, so no client in between can invent a reply with it
-- 3. n
-- 4. ttl of the values in ms
-- 5. ttl of the tombstone in ms
-- 6. the lowest fence
-- 7. for how many ms a counter outlives the moment that its number names
-- 8 and on: for each key the expected value, then the next one. `""` stands for nothing
--
-- Replies:
-- {token, fence}: done
-- {token, hits}: `end` is done. A `t` for each key that had its expected value, an `f` for each other
-- {0, number, ms, value}: refused by the key with this number, 0 for the tombstone, its ms to live, and its value.
--    The ms are -2 unless a lock is claimed: its next value is the token
--
-- A second execution changes nothing. Numbers are printed with %.0f: Lua would write 1.79e+12.

local op, token, n, ttl = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local fence, kept = tonumber(ARGV[6]), tonumber(ARGV[7])
local tombstone, counters = n + 1, n + 2

local function expected(i) return ARGV[6 + 2 * i] end
local function following(i) return ARGV[7 + 2 * i] end
-- MGET finds nothing at a key of another type. SET with GET then fails with Redis's own error, and the rollback deletes the
-- script's earlier writes.
local found = redis.call("MGET", unpack(KEYS))

if op == "end" then
  -- An earlier execution has found everything, and its reply is repeated. A later write of a late `SET … NX` goes, too.
  local isRepeated = found[tombstone] == token
  local hits, gone = "", {}
  for i = 1, n do
    local isOwn = found[i] == expected(i)
    hits = hits .. ((isOwn or isRepeated) and "t" or "f")
    if isOwn and following(i) == "" then gone[#gone + 1] = KEYS[i] end
    if isOwn and following(i) ~= "" then redis.call("SET", KEYS[i], following(i), "PX", ttl) end
  end
  if #gone > 0 then redis.call("DEL", unpack(gone)) end
  if KEYS[tombstone] and not isRepeated then
    local foundAll = not string.find(hits, "f")
    redis.call("SET", KEYS[tombstone], foundAll and token or found[tombstone] or 1, "PX", ARGV[5])
  end
  return {token, hits}
end

if op == "prove" then
  if not found[tombstone] then redis.call("DEL", KEYS[tombstone]) end
  op = "claim"
end

local keeps, isNew = op == "keep", false
for i = 1, n do
  -- A second execution finds the values of the first one.
  local isOwn = found[i] == following(i) or keeps and found[i] == expected(i)
  if not isOwn and (found[i] or keeps) then
    local remaining = -2
    if found[i] and not keeps and following(i) == token then remaining = redis.call("PTTL", KEYS[i]) end
    return {0, i, remaining, found[i] or ""}
  end
  isNew = isNew or not found[i]
end
if found[tombstone] then return {0, 0, -2, ""} end

for i = counters, #KEYS do
  local count = tonumber(found[i] or 0)
  -- This is no counter. Nothing is written, and the reply shows it in the fence's place.
  if not count then return {token, found[i]} end
  -- A second execution finds its own values, and draws no other fence.
  fence = math.max(fence, count + (isNew and 1 or 0))
end
if KEYS[counters] then
  -- A client whose clock is ahead draws a fence of the future. The counter must live until this endpoint's clock, by which
  -- it expires, has passed that moment.
  local time = redis.call("TIME")
  kept = kept + math.max(0, fence - time[1] * 1e3 - math.floor(time[2] / 1e3))
end
fence = string.format("%.0f", fence)
for i = counters, #KEYS do redis.call("SET", KEYS[i], fence, "PX", string.format("%.0f", kept), "GET") end
for i = 1, n do
  -- A late second execution of a claim or a swap must not undo an extension.
  local isDue = not found[i] or keeps and found[i] == expected(i)
  if ttl ~= "0" and isDue then redis.call("SET", KEYS[i], following(i), "PX", ttl, "GET") end
end
return {token, fence}
