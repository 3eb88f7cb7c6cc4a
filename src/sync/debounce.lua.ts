// Generated from debounce.lua by `node tools/lua.mjs`. Change it there.
import type { Script } from "../redis/script.ts";

export const debounceScript: Script = {
  source: `local call, ttl = ARGV[1], tonumber(ARGV[2])
local found = redis.call("GET", KEYS[1])
if found and found > call then return {0, found} end
redis.call("SET", KEYS[1], call, "PX", math.max(ttl, redis.call("PTTL", KEYS[1])))
return {call}`,
  sha: {
    redis: "ec2d169cc0ac128b726e83e03c25de2b22a72f5d",
    upstash: "3abb8e6f20473dae65d41508b5d556c6dfae6889",
  },
};
