-- Deletes a key, no matter who holds it.
--
-- KEYS: the key. ARGV: 1. `free`, for those who watch requests; 2. a nonce.
--
-- Reply: {nonce}, or {0} when there was no key. A plain DEL would do, but a client in between could invent its reply.

return {redis.call("DEL", KEYS[1]) == 1 and ARGV[2] or 0}
