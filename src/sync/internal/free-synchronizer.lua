-- Frees a synchronizer on one endpoint.
--
-- ARGV:
-- 1. a nonce
-- 2. what to do, with further arguments:
--    `keys`: delete all KEYS; 3. so many of them, the first ones, show whether there was anything to free;
--    `slots`: the same, unless the limit, which is at the first key, is larger than the number of slots, the other keys;
--    `arrivals`: move to a generation: 3. to this one; 4. it is kept for so many ms, or as long as what it replaces
--
-- Replies:
-- {nonce, 1 if there was anything, else 0}. The nonce is unguessable, so no client in between can invent these
-- {nonce, -limit}: `slots` needs more keys
-- `arrivals`: two more items, the generation that was there, and its ttl in ms

local nonce, op, key = ARGV[1], ARGV[2], KEYS[1]
if op == "arrivals" then
  local to, ttl, remaining, found = ARGV[3], ARGV[4], redis.call("PTTL", key), redis.call("HMGET", key, "g", "n")
  local at = found[1] or ""
  -- Nothing changes where this is not later than what is there.
  if to > at then
    redis.call("DEL", key)
    redis.call("HSET", key, "g", to)
    redis.call("PEXPIRE", key, math.max(remaining, tonumber(ttl)))
  end
  return {nonce, found[2] and 1 or 0, at, remaining}
end
local shown = ARGV[3]
if op == "slots" then
  local limit = tonumber(redis.call("GET", key) or 0)
  if limit >= #KEYS then return {nonce, -limit} end
end
local there = redis.call("EXISTS", unpack(KEYS, 1, shown))
redis.call("DEL", unpack(KEYS))
return {nonce, there > 0 and 1 or 0}
