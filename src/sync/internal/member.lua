-- Acquires, extends or releases a member on one endpoint. Its group is the part of its value behind the nonce.
--
-- KEYS: the members, a sorted set by deadline on this endpoint's clock, in ms since 1970; the tombstones; last, for a
-- read-write lock, the announcements of waiting writers, a set of the same kind.
--
-- ARGV:
-- 1. what to do:
--    `acquire`: add the member, unless a member of another group or a tombstone is there, or, for a request without an
--    announcement, any announcement;
--    `extend`: set its deadline if it is there, never create it (with ttl 0 only look);
--    `release`: remove it and the announcement, and keep the tombstones for `ttl`; the first tombstone records whether
--    the member was there
-- 2. the member
-- 3. the character at which its group begins
-- 4. ttl in ms
-- 5. number of tombstones
-- 6. announcement to make if refused, `""` for none
-- 7. `1`: announce even if granted
-- 8. ttl of the announcement in ms
-- 9. for a release with wake-ups, the channel of those that wait
--
-- Replies:
-- {member}: done; the nonce is unguessable, so no client in between can invent this reply
-- {0, ms until the last obstacle expires}: `acquire` was refused
-- {0}: the member was not there
--
-- A second execution of a release finds the tombstone of the first, and replies the same.

local op, member, from, ttl, tombstones, id = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5], ARGV[6]
local always, expiry, channel = ARGV[7] == "1", tonumber(ARGV[8]), ARGV[9]

local time = redis.call("TIME")
local now = time[1] * 1e3 + math.floor(time[2] / 1e3)
local waiting = KEYS[2 + tombstones]

-- ms until the last deadline, and who has it: all members are of one group, so this one represents all.
local function last(key)
  local found = redis.call("ZRANGE", key, -1, -1, "WITHSCORES")
  return tonumber(found[2] or 0) - now, found[1]
end

local function put(key, how, name, ms, remaining)
  redis.call("ZREMRANGEBYSCORE", key, "-inf", string.format("%.0f", now))
  redis.call("ZADD", key, how, string.format("%.0f", now + ms), name)
  redis.call("PEXPIREAT", key, string.format("%.0f", now + math.max(ms, remaining)))
end

-- Tells those that can be served now, even if the released member was not there: a holder has a quorum, and perhaps not the
-- endpoint at which all listen.
local function tell(removed)
  local free = last(KEYS[1]) <= 0
  local name = free and "free"
  if waiting then
    local writers = redis.call("ZCOUNT", waiting, string.format("(%.0f", now), "+inf")
    -- Once no writer is left, all readers may come.
    if writers == 0 then name = (free or removed) and "r" end
  end
  -- It does not matter if nobody may publish there.
  if name then redis.pcall("PUBLISH", channel, name) end
end

if op ~= "acquire" then
  local found = tonumber(redis.call("ZSCORE", KEYS[1], member) or 0) > now
  if op == "release" then
    if not found and tombstones ~= "0" then found = redis.call("GET", KEYS[2]) == "freed" end
    redis.call("ZREM", KEYS[1], member)
    local removed = waiting and id ~= "" and redis.call("ZREM", waiting, id) == 1
    for i = 2, 1 + tombstones do redis.call("SET", KEYS[i], found and "freed" or 1, "PX", ttl) end
    if channel then tell(removed) end
  elseif found and ttl > 0 then
    -- XX: only an extension shortens a deadline.
    put(KEYS[1], "XX", member, ttl, last(KEYS[1]))
  end
  return {found and member or 0}
end

if redis.call("EXISTS", unpack(KEYS, 2, 1 + tombstones)) > 0 then
  -- A member that is there is not refused: the tombstone is then that of its announcement. A refused request is not
  -- rolled back, and the member would stay.
  if tonumber(redis.call("ZSCORE", KEYS[1], member) or 0) > now then return {member} end
  return {0, 0}
end
local remaining, other = last(KEYS[1])
local retryAfter = 0
if remaining > 0 and string.sub(other, from) ~= string.sub(member, from) then retryAfter = remaining end
if waiting and id == "" then
  retryAfter = math.max(retryAfter, (last(waiting)))
  -- The announcement came after the member: this request is a second execution.
  if retryAfter > 0 and redis.call("ZSCORE", KEYS[1], member) then retryAfter = 0 end
elseif waiting and (retryAfter > 0 or always) then
  put(waiting, "GT", id, expiry, (last(waiting)))
end
if retryAfter > 0 then return {0, retryAfter} end
-- GT: a late second execution must not undo an extension.
put(KEYS[1], "GT", member, ttl, remaining)
return {member}
