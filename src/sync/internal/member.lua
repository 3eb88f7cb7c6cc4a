-- Acquires, extends or releases a member on one endpoint. Its group is the part of its value behind the nonce.
--
-- KEYS: the members, a sorted set by deadline on this endpoint's clock, in ms since 1970, then, unless it extends, the
-- member's tombstone, then, for a read-write lock, the announcements of waiting writers, a set of this kind, then, for a
-- writer that waits, the tombstone of its announcement.
--
-- ARGV:
-- 1. what to do:
--    `acquire`: add the member, unless a member of another group or a tombstone is there, or, for a reader, any announcement.
--    `extend`: set its deadline if it is there, never create it (with ttl 0 only look).
--    `release`: remove it and the announcement, and keep the tombstones for `ttl`. The member's records whether it was there
-- 2. the member
-- 3. ttl in ms
-- 4. the writer's announcement, made if it is refused. `""`: a reader, or nothing to remove
-- 5. ttl of the announcement in ms. 0: it is not made
-- 6. `1`: announce even if granted
-- 7. for a release with wake-ups, the channel of those that wait
--
-- Replies:
-- {member}: done. The nonce is unguessable, so no client in between can invent this reply
-- {0, ms until the last obstacle expires}: `acquire` was refused
-- {0}: the member was not there
--
-- A second execution of a release finds the tombstone of the first, and its reply is equal.

local op, member, ttl, id, expiry, always, channel = unpack(ARGV)
local members, tombstone, waiting, left = unpack(KEYS)
ttl, expiry = tonumber(ttl), tonumber(expiry)

local time = redis.call("TIME")
local now = time[1] * 1e3 + math.floor(time[2] / 1e3)

-- ms until the last deadline, and its member: all members are of one group, so this one represents all.
local function last(key)
  local found = redis.call("ZRANGE", key, -1, -1, "WITHSCORES")
  return tonumber(found[2] or 0) - now, found[1]
end

local function put(key, how, name, ms, remaining)
  redis.call("ZREMRANGEBYSCORE", key, "-inf", string.format("%.0f", now))
  redis.call("ZADD", key, how, string.format("%.0f", now + ms), name)
  redis.call("PEXPIREAT", key, string.format("%.0f", now + math.max(ms, remaining)))
end

local function isThere()
  return tonumber(redis.call("ZSCORE", members, member) or 0) > now
end

if op == "extend" then
  local found = isThere()
  -- XX: only an extension shortens a deadline.
  if found and ttl > 0 then put(members, "XX", member, ttl, last(members)) end
  return {found and member or 0}
end

if op == "release" then
  local found = isThere() or redis.call("GET", tombstone) == "freed"
  redis.call("ZREM", members, member)
  redis.call("SET", tombstone, found and "freed" or 1, "PX", ttl)
  local removed = id ~= "" and redis.call("ZREM", waiting, id) == 1
  if left then redis.call("SET", left, 1, "PX", ttl) end
  if channel then
    -- Even if the member was not there: a holder has a quorum, and perhaps not the endpoint at which all listen. Once no
    -- writer is left, all readers may come. It does not matter if nobody may publish there.
    local free = last(members) <= 0
    local writers = waiting and redis.call("ZCOUNT", waiting, string.format("(%.0f", now), "+inf")
    if writers == 0 and (free or removed) then
      redis.pcall("PUBLISH", channel, "r")
    elseif free then
      redis.pcall("PUBLISH", channel, "free")
    end
  end
  return {found and member or 0}
end

if redis.call("EXISTS", tombstone, left or tombstone) > 0 then
  -- A member that is there is not refused: the tombstone then belongs to its announcement. A refused request is not
  -- rolled back, and the member would stay.
  if isThere() then return {member} end
  return {0, 0}
end
local remaining, other = last(members)
local retryAfter = 0
if remaining > 0 and string.sub(other, 34) ~= string.sub(member, 34) then retryAfter = remaining end
if waiting and id == "" then
  retryAfter = math.max(retryAfter, (last(waiting)))
  -- The announcement came after the member: this request is a second execution.
  if retryAfter > 0 and redis.call("ZSCORE", members, member) then retryAfter = 0 end
elseif left and (retryAfter > 0 or always == "1") then
  put(waiting, "GT", id, expiry, (last(waiting)))
end
if retryAfter > 0 then return {0, retryAfter} end
-- GT: a late second execution must not undo an extension.
put(members, "GT", member, ttl, remaining)
return {member}
