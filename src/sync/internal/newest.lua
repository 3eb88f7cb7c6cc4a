-- Announces a call on one endpoint, unless a later one is announced there.
--
-- KEYS: the last call. ARGV: 1. the call; 2. ttl in ms. Calls are texts of one length; the later one is the greater.
--
-- Replies: {the call}: it is the last one there. {0, the later call}: it is not.

local call, ttl = ARGV[1], tonumber(ARGV[2])
local found = redis.call("GET", KEYS[1])
if found and found > call then return {0, found} end
-- The key lives at least as long as any call announced there, so each call finds what came after it within its ttl.
redis.call("SET", KEYS[1], call, "PX", math.max(ttl, redis.call("PTTL", KEYS[1])))
return {call}
