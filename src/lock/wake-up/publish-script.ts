import { cellScript } from "../../redis/cell-script.ts";
import type { Script } from "../../redis/script.ts";

/**
 * Releases a cell, and tells those that wait for it.
 *
 * KEYS, ARGV 1 to 8: those of a `release` of the cell's script; then the channels.
 *
 * Publishes the number of a channel's subscribers, where it has any; also where the release did not find its value: a
 * holder has a quorum, and perhaps not the endpoint at which all listen. Replies: {the reply of the cell's script,
 * commands that were called for the messages}.
 *
 * Executed twice it publishes twice: a message is a hint only.
 */
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
    redis: "4f0e3b5e7cd3cb9d664c524ea801b8a2cdc25bfc",
    upstash: "e56ad585ada2e0e50e14b7f39973c61044aed1ef",
  },
};
