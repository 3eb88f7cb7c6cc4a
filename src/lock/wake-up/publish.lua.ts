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
    redis: "4358d48becb323e295d09e1c28e41b7f0c5f6c06",
    upstash: "169dfdb8c038a569bf48ba94b71d7aa5179a3dfe",
  },
};
