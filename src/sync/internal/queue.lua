-- Acquires a lock in the order of its queue on one endpoint, rolls that back, removes a ticket from the queue, or releases
-- the lock.
--
-- KEYS:
-- 1. the lock
-- 2. the queue: one text, `ticket:expiry,ticket:expiry`, in no order, with expiries on this endpoint's clock: so it is read
--    and written with one command each, however long it is. A ticket is not in it while it holds the lock
-- 3. the ticket's tombstone; for a release of the lock the value's, if it leaves one
-- 4. the round's tombstone, for a request that acquires or rolls back
--
-- ARGV:
-- 1. the value
-- 2. the ticket, of letters and digits; the lesser text is the earlier ticket; `""`: the lock is only released
-- 3. ms until the ticket expires unless it is used again; 0: it is not added to the queue. For a removal or release, for how
--    many ms the tombstone is kept
-- 4. the lock's ttl in ms; 0: the lock is released if it has the value. Then, with a round's tombstone, the ticket of the
--    lock that was released returns to the queue; without, the ticket is removed
-- 5. for how many ms the round's tombstone is kept
-- 6. with wake-ups, for a removal or release: the channel on which the first ticket is called when the lock is free
--
-- Replies:
-- {value, 0}: the lock has the value, or, for a ticket or lock that was removed, had it
-- {0, live tickets before this one}: it does not have it
--
-- A second execution does no more than the first: the lock's ttl stays, a ticket's own requests only extend its expiry,
-- and a ticket returns only in exchange for the lock.

local value, ticket, expiry, ttl = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local retention, channel = ARGV[5], ARGV[6]

-- MGET finds nothing at a key of another type. SET with GET fails there, with Redis's own error.
local found = redis.call("MGET", unpack(KEYS))
local holder, queue = found[1], found[2] or ""

-- Calls the first ticket. It does not matter if nobody may publish there.
local function tell()
  local first = nil
  for other in string.gmatch(queue, "(%w+):") do
    if not first or other < first then first = other end
  end
  if channel and first then redis.pcall("PUBLISH", channel, first) end
end

if ttl > 0 then
  if holder == value then return {value, 0} end
  if found[3] or found[4] then return {0, 0} end
  if not holder and queue == "" then
    redis.call("SET", KEYS[1], value, "PX", ttl, "GET")
    return {value, 0}
  end
end

if ticket == "" then
  -- A second release finds its tombstone, and replies the same.
  if found[3] == "freed" then return {value, 0} end
  if holder == value then redis.call("DEL", KEYS[1]) end
  if KEYS[3] then redis.call("SET", KEYS[3], holder == value and "freed" or 1, "PX", expiry) end
  if not holder or holder == value then tell() end
  return {holder == value and value or 0, 0}
end

local rollsBack = ttl == 0 and KEYS[4]
if ttl == 0 and holder == value then redis.call("DEL", KEYS[1]) end
if rollsBack then
  redis.call("SET", KEYS[4], 1, "PX", retention)
  if holder ~= value then return {0, 0} end
  -- The ticket was removed meanwhile: it does not return.
  if found[3] then return {value, 0} end
end

local time = redis.call("TIME")
local now = time[1] * 1e3 + math.floor(time[2] / 1e3)
local live, ahead, latest, own = {}, 0, 0, now + expiry
for other, expiries in string.gmatch(queue, "(%w+):(%d+)") do
  if other == ticket then
    own = math.max(own, tonumber(expiries))
  elseif tonumber(expiries) > now then
    live[#live + 1] = {other, tonumber(expiries)}
    if other < ticket then ahead = ahead + 1 end
  end
end
local acquires = ttl > 0 and not holder and ahead == 0
if rollsBack or ttl > 0 and expiry > 0 and not acquires then live[#live + 1] = {ticket, own} end
for i, entry in ipairs(live) do
  latest = math.max(latest, entry[2])
  live[i] = entry[1] .. ":" .. string.format("%.0f", entry[2])
end
local before = queue
queue = table.concat(live, ",")
if queue == "" and before ~= "" then
  redis.call("DEL", KEYS[2])
elseif queue ~= before then
  redis.call("SET", KEYS[2], queue, "PX", string.format("%.0f", latest - now), "GET")
end
if acquires then
  redis.call("SET", KEYS[1], value, "PX", ttl, "GET")
  return {value, 0}
end
if rollsBack then return {value, 0} end
if ttl > 0 then return {0, ahead} end

-- The ticket was removed, and the lock if it had the value.
redis.call("SET", KEYS[3], 1, "PX", expiry)
if not holder or holder == value then tell() end
if holder ~= value then return {0, ahead} end
return {value, 0}
