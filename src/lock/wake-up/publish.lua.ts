// Generated from publish.lua by `npm run scripts`. Change it there.
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
    redis: "17b9780959a746a30f3753dae12fb64ed20e0914",
    upstash: "d3527ac1b996ec5218db71be9df8fa62afef3833",
  },
};
