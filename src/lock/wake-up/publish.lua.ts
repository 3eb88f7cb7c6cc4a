// Generated from publish.lua by `node tools/lua.mjs`. Change it there.
import { cellScript } from "../../redis/cell.lua.ts";
import type { Script } from "../../redis/script.ts";

export const publishScript: Script = {
  source: `local function release()
${cellScript.source}
end
local reply, spent = release(), 0
for i = 9, #ARGV do
local subscribers = redis.call("PUBSUB", "NUMSUB", ARGV[i])[2]
spent = spent + 1
if subscribers > 0 then
redis.call("PUBLISH", ARGV[i], subscribers)
spent = spent + 1
end
end
return {reply, spent}`,
  sha: {
    redis: "8d7e41fb499b0025b08e5f07edf44804d06e90dc",
    upstash: "7d010d784e1a6b2f3182ee6546be107fda51bf5d",
  },
};
