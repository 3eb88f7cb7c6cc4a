-- Takes or extends one of a semaphore's slots on one endpoint. A slot is a permit.
--
-- KEYS: the limit, which is only shown, then the slots, free ones first.
--
-- ARGV:
-- 1. the value
-- 2. the limit of the caller
-- 3. ttl in ms
-- 4. how many of the slots may be taken: the first free one is. 0: none, only extend the slot that has the value
--
-- Replies:
-- {value, index of its slot among the slots, from 1, slots, limit}: granted
-- {0, 0, slots, limit}: refused
-- `slots` has a letter for each slot, in the order of the keys: `t` taken, `f` free. Letters, because clients in between
-- parse what looks like a number. `limit`: the largest one in use before, 0 if that is not known

local value, limit, ttl, span = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])

-- MGET finds nothing at a key of another type. SET with GET fails there, with Redis's own error.
local found = redis.call("MGET", unpack(KEYS))
local inUse, own, slots, remaining = tonumber(found[1]) or 0, 0, "", 0
for i = 2, #KEYS do
  slots = slots .. (found[i] and "t" or "f")
  if found[i] == value then own = i end
end
-- Only an extension shortens a ttl: a late second execution of a claim must not undo an extension.
if own > 0 and span > 0 then remaining = redis.call("PTTL", KEYS[own]) end
for i = 2, span + 1 do
  if own == 0 and not found[i] then own = i end
end
if own == 0 then return {0, 0, slots, inUse} end
ttl = math.max(ttl, remaining)
redis.call("SET", KEYS[own], value, "PX", ttl, "GET")
-- A larger limit stays as long as the last permit that was granted with it.
if limit >= inUse then
  redis.call("SET", KEYS[1], ARGV[2], "PX", math.max(ttl, redis.call("PTTL", KEYS[1])), "GET")
end
return {value, own - 1, slots, inUse}
