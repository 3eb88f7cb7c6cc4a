// Generated from member.lua by `node tools/lua.mjs`. Change it there.
import type { Script } from "../../redis/script.ts";

export const memberScript: Script = {
  source: `local op, member, from, ttl, tombstones, id = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5], ARGV[6]
local always, expiry, channel = ARGV[7] == "1", tonumber(ARGV[8]), ARGV[9]
local time = redis.call("TIME")
local now = time[1] * 1e3 + math.floor(time[2] / 1e3)
local waiting = KEYS[2 + tombstones]
local function last(key)
local found = redis.call("ZRANGE", key, -1, -1, "WITHSCORES")
return tonumber(found[2] or 0) - now, found[1]
end
local function put(key, how, name, ms, remaining)
redis.call("ZREMRANGEBYSCORE", key, "-inf", string.format("%.0f", now))
redis.call("ZADD", key, how, string.format("%.0f", now + ms), name)
redis.call("PEXPIREAT", key, string.format("%.0f", now + math.max(ms, remaining)))
end
local function tell(removed)
local free = last(KEYS[1]) <= 0
if waiting then
local writers = redis.call("ZCOUNT", waiting, string.format("(%.0f", now), "+inf")
if writers > 0 and free then
redis.call("PUBLISH", channel, writers .. ":w")
elseif writers == 0 and (free or removed) then
redis.call("PUBLISH", channel, "0:r")
else
return 2
end
return 3
end
local subscribers = free and redis.call("PUBSUB", "NUMSUB", channel)[2] or 0
if subscribers > 0 then redis.call("PUBLISH", channel, subscribers) end
return 1 + (free and 1 or 0) + (subscribers > 0 and 1 or 0)
end
if op ~= "acquire" then
local found = tonumber(redis.call("ZSCORE", KEYS[1], member) or 0) > now
if op == "release" then
if not found and tombstones ~= "0" then found = redis.call("GET", KEYS[2]) == "freed" end
redis.call("ZREM", KEYS[1], member)
local removed = waiting and id ~= "" and redis.call("ZREM", waiting, id) == 1
for i = 2, 1 + tombstones do redis.call("SET", KEYS[i], found and "freed" or 1, "PX", ttl) end
if channel then return {found and member or 0, tell(removed)} end
elseif found and ttl > 0 then
put(KEYS[1], "XX", member, ttl, last(KEYS[1]))
end
return {found and member or 0}
end
if redis.call("EXISTS", unpack(KEYS, 2, 1 + tombstones)) > 0 then
if tonumber(redis.call("ZSCORE", KEYS[1], member) or 0) > now then return {member} end
return {0, 0}
end
local remaining, other = last(KEYS[1])
local retryAfter = 0
if remaining > 0 and string.sub(other, from) ~= string.sub(member, from) then retryAfter = remaining end
if waiting and id == "" then
retryAfter = math.max(retryAfter, (last(waiting)))
if retryAfter > 0 and redis.call("ZSCORE", KEYS[1], member) then retryAfter = 0 end
elseif waiting and (retryAfter > 0 or always) then
put(waiting, "GT", id, expiry, (last(waiting)))
end
if retryAfter > 0 then return {0, retryAfter} end
put(KEYS[1], "GT", member, ttl, remaining)
return {member}`,
  sha: {
    redis: "c2c4858982aba13ca0d4f8402fa983fcd131ce93",
    upstash: "01a56950a1816941dc25bdad324268d99353adc8",
  },
};
