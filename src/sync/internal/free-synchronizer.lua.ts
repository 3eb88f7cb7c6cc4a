// Generated from free-synchronizer.lua by `node tools/lua.mjs`. Change it there.
import type { Script } from "../../redis/script.ts";

export const freeSynchronizerScript: Script = {
  source: `local nonce, op, key = ARGV[1], ARGV[2], KEYS[1]
if op == "arrivals" or op == "call" then
local to, ttl, remaining, at, had = ARGV[3], tonumber(ARGV[4]), redis.call("PTTL", key), "", false
if op == "call" then
at = redis.call("GET", key) or ""
had = string.sub(at, 18, 18) == "t"
else
local found = redis.call("HMGET", key, "g", "n")
at, had = found[1] or "", found[2]
end
if to > at then
redis.call("DEL", key)
if op == "call" then redis.call("SET", key, to) else redis.call("HSET", key, "g", to) end
redis.call("PEXPIRE", key, math.max(remaining, ttl))
end
return {nonce, had and 1 or 0, at, remaining}
end
local shown = ARGV[3]
if op == "slots" then
local limit = tonumber(redis.call("GET", key) or 0)
if limit >= #KEYS then return {nonce, -limit} end
end
local there = redis.call("EXISTS", unpack(KEYS, 1, shown))
redis.call("DEL", unpack(KEYS))
return {nonce, there > 0 and 1 or 0}`,
  sha: {
    redis: "fbe2a48f86379785b52a118430cad963c56e0e78",
    upstash: "4c7d6ab0e3c523e014a7bc1149f9d736aa717005",
  },
};
