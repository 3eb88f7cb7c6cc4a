-- Reads the value of a key, and changes nothing. A script, because only a primary executes it: a replica may lag.
--
-- KEYS: the key, and a counter. ARGV: `peek`, for people who watch requests.
--
-- Reply: {value or "", ms until the key expires, counter or ""}. The ms are -2 where there is no key.

local found = redis.call("MGET", unpack(KEYS))
return {found[1] or "", redis.call("PTTL", KEYS[1]), found[2] or ""}
