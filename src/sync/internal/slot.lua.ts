// Generated from slot.lua by `npm run scripts`. Change it there.
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
redis.call("SET", KEYS[own], value, "PX", math.max(ttl, remaining))
redis.call("SET", KEYS[1], limit, "PX", math.max(ttl, remaining, redis.call("PTTL", KEYS[1])))
return {value, own - 1, slots}`,
  sha: {
    redis: "0b9eca541ee6101b4aa7ab71e69fdcbe7df7bf23",
    upstash: "b9d7379569d0fd3461b67d418e34fb17698bc860",
  },
};
