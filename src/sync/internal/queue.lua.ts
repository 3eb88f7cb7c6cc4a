// Generated from queue.lua by `node tools/lua.mjs`. Change it there.
import type { Script } from "../../redis/script.ts";

export const queueScript: Script = {
  source: `local value, ticket, expiry, ttl = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local retention, grace, channel = ARGV[5], tonumber(ARGV[6]), ARGV[7]
local found = redis.call("MGET", unpack(KEYS))
local holder, queue, calls = found[1], found[2] or "", 1
local function tell()
local first, count = nil, 0
for other in string.gmatch(queue, "(%w+):") do
if not first or other < first then first = other end
count = count + 1
end
if channel and first then
local others = ""
if count > 1 then
others = ":" .. redis.call("PUBSUB", "NUMSUB", channel)[2]
calls = calls + 1
end
redis.call("PUBLISH", channel, "0:" .. first .. others)
calls = calls + 1
end
end
if ttl > 0 then
if holder == value then return {value, 0, 1} end
if found[3] or found[4] then return {0, 0, 1} end
if not holder and queue == "" then
redis.call("SET", KEYS[1], value, "PX", ttl, "GET")
return {value, 0, 2}
end
end
if ticket == "" then
if found[3] == "freed" then return {value, 0, 1} end
if holder == value then
redis.call("DEL", KEYS[1])
calls, holder = 2, nil
end
if KEYS[3] then
redis.call("SET", KEYS[3], found[1] == value and "freed" or 1, "PX", expiry)
calls = calls + 1
end
if not holder then tell() end
return {found[1] == value and value or 0, 0, calls}
end
local rollsBack = ttl == 0 and KEYS[4]
if ttl == 0 and holder == value then redis.call("DEL", KEYS[1]) end
if rollsBack then
redis.call("SET", KEYS[4], 1, "PX", retention)
if holder ~= value then return {0, 0, 2} end
if found[3] then return {value, 0, 3} end
end
local time = redis.call("TIME")
local now = time[1] * 1e3 + math.floor(time[2] / 1e3)
local live, ahead, latest, own = {}, 0, 0, now + expiry
for other, expiries in string.gmatch(queue, "(%w+):(%d+)") do
if other == ticket then
own = math.max(own, tonumber(expiries))
elseif tonumber(expiries) > now then
live[#live + 1] = {other, tonumber(expiries)}
if other < ticket then ahead = ahead + 1 end
end
end
local acquires = ttl > 0 and not holder and ahead == 0
local mark, calling, again = string.match(queue, "/.*") or "", nil, nil
if ttl > 0 and not holder and ahead > 0 and grace then
local ends, stage, caller = string.match(mark, "(%d+)(%a)(%w+)")
local left = tonumber(ends or 0) - now
again = left
if stage == "f" and left <= 0 and left > -grace then
calling, again = "all", grace
for _, entry in ipairs(live) do entry[2] = math.min(entry[2], now + grace) end
elseif left <= 0 then
calling, again = "first", 500
elseif caller ~= ticket then
again = 0
end
if calling then mark = "/" .. string.format("%.0f", now + again) .. string.sub(calling, 1, 1) .. ticket end
end
if rollsBack or ttl > 0 and expiry > 0 and not acquires then live[#live + 1] = {ticket, own} end
for i, entry in ipairs(live) do
latest = math.max(latest, entry[2])
live[i] = entry[1] .. ":" .. string.format("%.0f", entry[2])
end
local before = queue
queue, calls = table.concat(live, ","), 2
if queue ~= "" and not acquires then queue = queue .. mark end
if queue ~= before then
calls = 3
if queue == "" then
redis.call("DEL", KEYS[2])
else
redis.call("SET", KEYS[2], queue, "PX", string.format("%.0f", latest - now), "GET")
end
end
if acquires then
redis.call("SET", KEYS[1], value, "PX", ttl, "GET")
return {value, 0, calls + 1}
end
if rollsBack then return {value, 0, calls + 2} end
if calling == "first" then
tell()
elseif calling then
redis.call("PUBLISH", channel, "0:all")
calls = calls + 1
end
if ttl > 0 then return {0, ahead, calls, again} end
redis.call("SET", KEYS[3], 1, "PX", expiry)
calls = calls + 1
if holder == value then calls, holder = calls + 1, nil end
if not holder then tell() end
if found[1] ~= value then return {0, ahead, calls} end
return {value, 0, calls}`,
  sha: {
    redis: "066374dfe31591d8161086e18e27df4e7f45bd6e",
    upstash: "b08cc36eee4b3d75da67c3fb0c5d53b4eee60453",
  },
};
