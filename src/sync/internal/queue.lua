-- One request of a ticket to a lock with a queue, at one endpoint.
--
-- KEYS:
-- 1. the lock
-- 2. the queue: one text, `ticket:expiry,ticket:expiry`, in no order, with expiries on this endpoint's clock: so it is read
--    and written with one command each, however long it is. A ticket is not in it while it holds the lock
-- 3. and on: tombstones. Each of them refuses `acquire`. `rollBack` and `leave` write the first one
--
-- ARGV:
-- 1. what to do:
--    `acquire`: the lock gets the value, unless it has another one, or an earlier ticket waits. Else the ticket is queued.
--    `rollBack`: if the lock has the value, it is released, and the ticket returns to the queue, unless its own tombstone,
--    the second one, is there.
--    `leave`: the ticket leaves the queue for good, and the lock is released if it has the value
-- 2. the value
-- 3. the ticket, of letters and digits. Of two, the lesser text is the earlier ticket
-- 4. ms to live: of the lock for `acquire`, else of the tombstone
-- 5. ms to live of the ticket, unless it is used again. 0: it is not queued
-- 6. with wake-ups, for `leave`: the channel on which the first ticket is called when the lock is free
--
-- Replies:
-- {value, 0}: the lock has the value, or had it
-- {0, live tickets before this one}: it does not have it
--
-- A second execution does no more than the first: the lock's ttl stays, a ticket's own requests only extend its expiry,
-- and a ticket returns only in exchange for the lock.

local op, value, ticket, ms, expiry = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

-- MGET finds nothing at a key of another type. SET with GET fails there, with Redis's own error.
local found = redis.call("MGET", unpack(KEYS))
local queue, isOwn, isFree = found[2] or "", found[1] == value, not found[1]
local done = {isOwn and value or 0, 0}

local function acquire()
  redis.call("SET", KEYS[1], value, "PX", ms, "GET")
  return {value, 0}
end

if op == "acquire" then
  if isOwn or found[3] or found[4] then return done end
  if isFree and queue == "" then return acquire() end
else
  if isOwn then redis.call("DEL", KEYS[1]) end
  if KEYS[3] then redis.call("SET", KEYS[3], 1, "PX", ms) end
  if op == "rollBack" and (not isOwn or found[4]) then return done end
  if op == "leave" and queue == "" then return done end
end

local time = redis.call("TIME")
local now = time[1] * 1e3 + math.floor(time[2] / 1e3)
local live, latest, ahead, first, own = {}, 0, 0, nil, now + expiry
local function put(name, ends)
  latest = math.max(latest, ends)
  live[#live + 1] = name .. ":" .. string.format("%.0f", ends)
end
for name, text in string.gmatch(queue, "(%w+):(%d+)") do
  local ends = tonumber(text)
  if name == ticket then
    own = math.max(own, ends)
  elseif ends > now then
    put(name, ends)
    if name < ticket then ahead = ahead + 1 end
    if not first or name < first then first = name end
  end
end
local acquires = op == "acquire" and isFree and ahead == 0
if expiry ~= "0" and not acquires then put(ticket, own) end
local rest = table.concat(live, ",")
if rest == "" and queue ~= "" then
  redis.call("DEL", KEYS[2])
elseif rest ~= queue then
  redis.call("SET", KEYS[2], rest, "PX", string.format("%.0f", latest - now), "GET")
end
if acquires then return acquire() end
if op == "acquire" then return {0, ahead} end
-- It does not matter if nobody may publish there.
if ARGV[6] and first and (isFree or isOwn) then redis.pcall("PUBLISH", ARGV[6], first) end
return done
