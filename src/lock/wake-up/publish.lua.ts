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
    redis: "0540837d42043b4441332788f3ac8bf828e1e597",
    upstash: "acd261b229ab60a07169591d1970c41fdaf474cc",
  },
};
