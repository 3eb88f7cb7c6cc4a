-- Deletes keys, regardless of the holder.
--
-- KEYS: the keys. ARGV: 1. `free`, for people who watch requests. 2. a nonce. 3. how many of the keys, the first ones, show
-- whether there was anything to free.
--
-- Reply: {nonce}, or {0} when there was nothing. A plain DEL would do, but a client in between could invent its reply.

local shown = tonumber(ARGV[3])
local freed = redis.call("DEL", unpack(KEYS, 1, shown))
if #KEYS > shown then redis.call("DEL", unpack(KEYS, shown + 1)) end
return {freed > 0 and ARGV[2] or 0}
