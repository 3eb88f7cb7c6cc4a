-- Acquires a lock in the order of its queue on one endpoint, rolls that back, removes a ticket from the queue, or releases
-- the lock.
--
-- KEYS:
-- 1. the lock
-- 2. the queue: one text, `ticket:expiry,ticket:expiry`, in no order, with expiries on this endpoint's clock: so it is read
--    and written with one command each, however long it is. A ticket is not in it while it holds the lock. With wake-ups,
--    `/time`, a letter and a ticket may follow: the lock is free, and until then the first ticket (`f`) or all (`a`) may
--    answer, whom that ticket has called
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
-- 6. with wake-ups, ms in which a living waiter answers a call
-- 7. with wake-ups, the channel on which the first ticket is called when the lock is free, unless its round is rolled back
--
-- Replies:
-- {value, 0}: the lock has the value, or, for a ticket or lock that was removed, had it
-- {0, live tickets before this one}: it does not have it
-- With wake-ups, a request that found the lock free is replied one item more: ms after which to ask again; 0: no matter
--
-- A second execution does no more than the first: the lock's ttl stays, a ticket's own requests only extend its expiry,
-- and a ticket returns only in exchange for the lock.

local value, ticket, expiry, ttl = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local retention, grace, channel = ARGV[5], tonumber(ARGV[6]), ARGV[7]

-- MGET finds nothing at a key of another type. SET with GET fails there, with Redis's own error.
local found = redis.call("MGET", unpack(KEYS))
local holder, queue = found[1], found[2] or ""

-- Calls the first ticket. Of the others about four look after whether it has come, drawn from the number of streams.
local function tell()
  local first, count = nil, 0
  for other in string.gmatch(queue, "(%w+):") do
    if not first or other < first then first = other end
    count = count + 1
  end
  if channel and first then
    local others = ""
    if count > 1 then
      others = ":" .. redis.call("PUBSUB", "NUMSUB", channel)[2]
    end
    redis.call("PUBLISH", channel, "0:" .. first .. others)
  end
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
-- With wake-ups, tickets are kept for long. So where the lock stays free although the first was called, all are called, and
-- those whose waiters do not answer expire together.
local mark, calling, again = string.match(queue, "/.*") or "", nil, nil
if ttl > 0 and not holder and ahead > 0 and grace then
  local ends, stage, caller = string.match(mark, "(%d+)(%a)(%w+)")
  local left = tonumber(ends or 0) - now
  again = left
  if stage == "f" and left <= 0 and left > -grace then
    calling, again = "all", grace
    for _, entry in ipairs(live) do entry[2] = math.min(entry[2], now + grace) end
  elseif left <= 0 then
    calling, again = "first", 500
  elseif caller ~= ticket then
    -- Only who called asks again: all that answer would be a herd.
    again = 0
  end
  if calling then mark = "/" .. string.format("%.0f", now + again) .. string.sub(calling, 1, 1) .. ticket end
end
if rollsBack or ttl > 0 and expiry > 0 and not acquires then live[#live + 1] = {ticket, own} end
for i, entry in ipairs(live) do
  latest = math.max(latest, entry[2])
  live[i] = entry[1] .. ":" .. string.format("%.0f", entry[2])
end
local before = queue
queue = table.concat(live, ",")
if queue ~= "" and not acquires then queue = queue .. mark end
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
if calling == "first" then
  tell()
elseif calling then
  redis.call("PUBLISH", channel, "0:all")
end
if ttl > 0 then return {0, ahead, again} end

-- The ticket was removed, and the lock if it had the value.
redis.call("SET", KEYS[3], 1, "PX", expiry)
if not holder or holder == value then tell() end
if holder ~= value then return {0, ahead} end
return {value, 0}
