import { registerScript } from "../../redis/register-script.ts";
import type { Script } from "../../redis/script.ts";

/**
 * Releases a register, and tells those that wait for it.
 *
 * KEYS, ARGV 1 to 8: those of a `release` of the register's script; then the channels.
 *
 * Publishes the number of a channel's subscribers, where it has any and the release found its value. Replies: {the reply of
 * the register's script, commands that were called for the messages}.
 *
 * Executed twice it publishes twice where the release finds its own tombstone: a message is a hint only.
 */
export const publishScript: Script = {
  source: `local function release()
${registerScript.source}
end
local reply, spent = release(), 0
if reply[1] == ARGV[2] then
  for i = 9, #ARGV do
    local subscribers = redis.call("PUBSUB", "NUMSUB", ARGV[i])[2]
    spent = spent + 1
    if subscribers > 0 then
      redis.call("PUBLISH", ARGV[i], subscribers)
      spent = spent + 1
    end
  end
end
return {reply, spent}`,
  sha: {
    redis: "13f060608477e5a2d1f1e29e4b51cdbf1ce28e79",
    upstash: "b452b32241867f7eda96cb66579d4ba1fd932eff",
  },
};
