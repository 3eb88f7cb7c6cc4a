// Generated from peek.lua by `node tools/lua.mjs`. Change it there.
import type { Script } from "./script.ts";

export const peekScript: Script = {
  source: `local found = redis.call("MGET", unpack(KEYS))
return {found[1] or "", redis.call("PTTL", KEYS[1]), found[2] or ""}`,
  sha: {
    redis: "ac46b17e21e1c2f7137fdaf9eab1da69d69a7fa2",
    upstash: "ffc8444cf56c8d1c91d0d4a1735897b7de248616",
  },
};
