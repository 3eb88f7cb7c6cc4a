import type { Script } from "./script.ts";

/**
 * Reads what is stored at a key, and changes nothing. A script, because only a primary executes it: a replica may lag.
 *
 * KEYS: the key; a counter. ARGV: `peek`, for those who watch requests.
 *
 * Replies: {value or "", ms until the key expires, counter or ""}. The ms are -2 where there is no key.
 */
export const peekScript: Script = {
  source: `local found = redis.call("MGET", unpack(KEYS))
return {found[1] or "", redis.call("PTTL", KEYS[1]), found[2] or ""}`,
  sha: {
    redis: "ac46b17e21e1c2f7137fdaf9eab1da69d69a7fa2",
    upstash: "ffc8444cf56c8d1c91d0d4a1735897b7de248616",
  },
};
