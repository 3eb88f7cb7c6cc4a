// Generated from slot.lua by `node tools/lua.mjs`. Change it there.
import type { Script } from "../../redis/script.ts";

export const slotScript: Script = {
  source: `local value, limit, ttl, span = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local found = redis.call("MGET", unpack(KEYS))
if found[1] and found[1] ~= limit then return {0, tonumber(found[1]), ""} end
local own, slots, remaining = 0, "", 0
for i = 2, #KEYS do
slots = slots .. (found[i] and "t" or "f")
if found[i] == value then own = i end
end
if own > 0 and span > 0 then remaining = redis.call("PTTL", KEYS[own]) end
for i = 2, span + 1 do
if own == 0 and not found[i] then own = i end
end
if own == 0 then return {0, 0, slots} end
redis.call("SET", KEYS[own], value, "PX", math.max(ttl, remaining), "GET")
redis.call("SET", KEYS[1], limit, "PX", math.max(ttl, remaining, redis.call("PTTL", KEYS[1])), "GET")
return {value, own - 1, slots}`,
  sha: {
    redis: "d5c81fbbfdbc5a38d5d9ec304ef691b55f48a40d",
    upstash: "648616441922d2dacd0c565aab269b8fcc014dc5",
  },
};
