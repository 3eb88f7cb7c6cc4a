-- Ends what a cell claims, and tells those that wait for it.
--
-- KEYS, ARGV: those of an `end` in cell.lua. The other ARGV: the channels.
--
-- Reply: {the reply of cell.lua, commands that were called for the messages}.
--
-- Executed twice it publishes twice: a message is a hint only.

local function finish()
  --- @include "../../redis/cell.lua"
end

-- Also where it did not find its value: a holder has a quorum, and perhaps not the endpoint at which all listen.
local reply, spent = finish(), 0
for i = 8 + 2 * tonumber(ARGV[3]), #ARGV do
  -- Each of those that wait draws its turn from their number.
  local subscribers = redis.call("PUBSUB", "NUMSUB", ARGV[i])[2]
  spent = spent + 1
  if subscribers > 0 then
    redis.call("PUBLISH", ARGV[i], subscribers)
    spent = spent + 1
  end
end
return {reply, spent}
