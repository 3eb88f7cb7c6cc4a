-- Acquires or extends one of a semaphore's slots on one endpoint.
--
-- KEYS: the limit; the slots, first those that may be acquired.
--
-- ARGV:
-- 1. the value
-- 2. the limit
-- 3. ttl in ms
-- 4. how many of the slots may be acquired; 0: none, only extend the slot that has the value
--
-- Replies:
-- {value, index of its slot among the slots, from 1, slots}: granted
-- {0, 0, slots}: refused
-- {0, the limit in use, ""}: another limit is in use
-- `slots` has a letter for each slot, in the order of the keys: `t` taken, `f` free. Letters, because clients in between
-- parse what looks like a number.

local value, limit, ttl, span = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])

-- MGET finds nothing at a key of another type. SET with GET fails there, with Redis's own error.
local found = redis.call("MGET", unpack(KEYS))
if found[1] and found[1] ~= limit then return {0, tonumber(found[1]), ""} end
local own, slots, remaining = 0, "", 0
for i = 2, #KEYS do
  slots = slots .. (found[i] and "t" or "f")
  if found[i] == value then own = i end
end
-- Only an extension shortens a ttl: a late second execution of an acquire must not undo an extension.
if own > 0 and span > 0 then remaining = redis.call("PTTL", KEYS[own]) end
for i = 2, span + 1 do
  if own == 0 and not found[i] then own = i end
end
if own == 0 then return {0, 0, slots} end
redis.call("SET", KEYS[own], value, "PX", math.max(ttl, remaining), "GET")
-- The limit is kept at least as long as any slot that was granted with it. The quorums of two holders share an endpoint,
-- so the second of them is refused there if its limit differs.
redis.call("SET", KEYS[1], limit, "PX", math.max(ttl, remaining, redis.call("PTTL", KEYS[1])), "GET")
return {value, own - 1, slots}
