// Generated from free.lua by `node tools/lua.mjs`. Change it there.
import type { Script } from "../redis/script.ts";

export const freeScript: Script = {
  source: `return {redis.call("DEL", KEYS[1]) == 1 and ARGV[2] or 0}`,
  sha: {
    redis: "bbd265f6da7adbe4b4c6e6b5274cba18d1f2370d",
    upstash: "ae6854eb781dcfe5bbeb8aea7aeeb686c993193f",
  },
};
