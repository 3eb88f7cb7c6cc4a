-- Ends what a cell claims, and tells those that wait for it.
--
-- KEYS, ARGV: those of an `end` in cell.lua. The other ARGV: the channels.
--
-- Reply: that of cell.lua.
--
-- Executed twice it publishes twice: a message is a hint only.

local function finish()
  --- @include "../../redis/cell.lua"
end

-- Also where it did not find its value: a holder has a quorum, and perhaps not the endpoint at which all listen.
local reply = finish()
for i = 8 + 2 * tonumber(ARGV[3]), #ARGV do
  -- Each of those that wait draws its turn from their number.
  local subscribers = redis.call("PUBSUB", "NUMSUB", ARGV[i])[2]
  if subscribers > 0 then redis.call("PUBLISH", ARGV[i], subscribers) end
end
return reply
