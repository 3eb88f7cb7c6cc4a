// Generated from publish.lua by `node tools/lua.mjs`. Change it there.
import { cellScript } from "../../redis/cell.lua.ts";
import type { Script } from "../../redis/script.ts";

export const publishScript: Script = {
  source: `local function finish()
${cellScript.source}
end
local reply, spent = finish(), 0
for i = 8 + 2 * tonumber(ARGV[3]), #ARGV do
local subscribers = redis.call("PUBSUB", "NUMSUB", ARGV[i])[2]
spent = spent + 1
if subscribers > 0 then
redis.call("PUBLISH", ARGV[i], subscribers)
spent = spent + 1
end
end
return {reply, spent}`,
  sha: {
    redis: "03653690e29a245e2e73ed53e46464f640ec5c60",
    upstash: "3ea489598b31d40845b0faa90eac2c53eb658f35",
  },
};
