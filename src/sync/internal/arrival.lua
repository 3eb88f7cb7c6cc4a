-- Moves one endpoint to a generation of a latch, a barrier or the calls of a name, and adds an arrival to it, or only looks,
-- or withdraws a generation, unless there is a later one.
--
-- KEYS: a hash with the generation (`g`), the number of arrivals expected (`n`), and one longer field for each arrival.
--
-- ARGV:
-- 1. a nonce
-- 2. the generation, or `""`: only look. Of two generations the later one is the greater text
-- 3. the number expected. `""`: none is, or an operator asks, who does not know it and resets it
-- 4. ttl in ms. 0: withdraw
-- 5. the field of the arrival, or `""`
-- 6. with wake-ups, the channel of those that wait: all are told when the generation changes, or has all its arrivals at
--    this endpoint
--
-- Reply: {nonce, the endpoint's generation or "", the fields of its arrivals, the number expected, 0 if nobody has said it}.
-- If that is another number, nothing has changed

local nonce, to, count, ttl, id, channel = unpack(ARGV)
local all, found, ids = redis.call("HGETALL", KEYS[1]), {}, {}
for i = 1, #all, 2 do
  found[all[i]] = all[i + 1]
  if #all[i] > 1 then ids[#ids + 1] = all[i] end
end
local at, expected = found.g or "", found.n or count
if ttl == "0" then
  if at == to then redis.call("DEL", KEYS[1]) end
elseif to ~= "" and to >= at and (expected == count or count == "") then
  local remaining, added = redis.call("PTTL", KEYS[1]), {}
  -- An endpoint only moves to a later generation, which begins without arrivals.
  if to > at then
    redis.call("DEL", KEYS[1])
    at, found, ids, added = to, {}, {}, {"g", to}
  end
  if not found.n and count ~= "" then added[#added + 1], added[#added + 2] = "n", count end
  if id ~= "" and not found[id] then
    ids[#ids + 1], added[#added + 1], added[#added + 2] = id, id, 1
  end
  if added[1] then redis.call("HSET", KEYS[1], unpack(added)) end
  if channel and added[1] and (added[1] == "g" or #ids == tonumber(count)) then
    -- It does not matter if nobody may publish there.
    redis.pcall("PUBLISH", channel, "all")
  end
  -- No request shortens the ttl. One that changes nothing renews it only once half of it has passed.
  if added[1] or remaining < ttl / 2 then redis.call("PEXPIRE", KEYS[1], math.max(ttl, remaining)) end
end
return {nonce, at, ids, tonumber(expected) or 0}
