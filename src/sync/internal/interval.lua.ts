// Generated from interval.lua by `node tools/lua.mjs`. Change it there.
import type { Script } from "../../redis/script.ts";

export const intervalScript: Script = {
  source: `local value, op, ms, number = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local found = redis.call("MGET", unpack(KEYS))
local holder = found[1] or ""
local own, run = string.sub(holder, -#value) == value, string.match(holder, "^r(%d+):")
local ends, before = string.match(found[2] or "0:0", "(%d+):(%d+)")
if op == "release" then
if own then redis.call("DEL", KEYS[1]) end
if own and run and found[2] then redis.call("SET", KEYS[2], before .. ":" .. before, "KEEPTTL") end
if KEYS[4] then redis.call("SET", KEYS[4], 1, "PX", ms) end
return {own and value or 0}
end
local time = redis.call("TIME")
local now = time[1] * 1e3 + math.floor(time[2] / 1e3)
if op == "extend" then
if not own then return {0} end
if number > tonumber(run or 0) then
local fence, kept = tonumber(ARGV[5]), ms + ARGV[6]
ends = string.format("%.0f:", now + ms) .. (run and before or ends)
redis.call("SET", KEYS[1], "r" .. number .. ":" .. value, "PX", ms)
redis.call("SET", KEYS[2], ends, "PX", kept, "GET")
fence = math.max(tonumber(found[3] or 0), fence)
kept = string.format("%.0f", kept + math.max(0, fence - now))
redis.call("SET", KEYS[3], string.format("%.0f", fence), "PX", kept, "GET")
end
elseif not own then
if holder ~= "" and not run or found[4] then
return {0, math.max(0, redis.call("PTTL", KEYS[1])), "c"}
end
if run or ends + number > now then return {0, math.max(0, ends - now), "r"} end
redis.call("SET", KEYS[1], value, "PX", ms, "GET")
end
return {value, found[3] or 0}`,
  sha: {
    redis: "9e3da88494bace4fc7f3cf5dc6511022d07f86ed",
    upstash: "635de87f1c72fb9cd49a47f9b2df74aad0ba0c7e",
  },
};
