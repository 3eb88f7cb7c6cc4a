-- Frees a synchronizer on one endpoint.
--
-- ARGV:
-- 1. a nonce
-- 2. what to do, with further arguments:
--    `keys`: delete all KEYS; 3. so many of them, the first ones, show whether there was anything to free;
--    `slots`: the same, unless the limit, which is at the first key, is larger than the number of slots, the other keys;
--    `arrivals`: move to a generation; `call`: replace the last call: 3. by this one; 4. it is kept for so many ms, or as
--    long as what it replaces
--
-- Replies:
-- {nonce, 1 if there was anything, else 0}. The nonce is unguessable, so no client in between can invent these
-- {nonce, -limit}: `slots` needs more keys
-- `arrivals` and `call`: two more items, the generation or call that was there, and its ttl in ms

local nonce, op, key = ARGV[1], ARGV[2], KEYS[1]
if op == "arrivals" or op == "call" then
  local to, ttl, remaining, at, had = ARGV[3], tonumber(ARGV[4]), redis.call("PTTL", key), "", false
  if op == "call" then
    at = redis.call("GET", key) or ""
    had = string.sub(at, 18, 18) == "t"
  else
    local found = redis.call("HMGET", key, "g", "n")
    at, had = found[1] or "", found[2]
  end
  -- Nothing changes where this is not later than what is there.
  if to > at then
    redis.call("DEL", key)
    if op == "call" then redis.call("SET", key, to) else redis.call("HSET", key, "g", to) end
    redis.call("PEXPIRE", key, math.max(remaining, ttl))
  end
  return {nonce, had and 1 or 0, at, remaining}
end
local shown = ARGV[3]
if op == "slots" then
  local limit = tonumber(redis.call("GET", key) or 0)
  if limit >= #KEYS then return {nonce, -limit} end
end
local there = redis.call("EXISTS", unpack(KEYS, 1, shown))
redis.call("DEL", unpack(KEYS))
return {nonce, there > 0 and 1 or 0}
