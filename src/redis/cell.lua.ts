// Generated from cell.lua by `node tools/lua.mjs`. Change it there.
import type { Script } from "./script.ts";

export const cellScript: Script = {
  source: `local op, value, from, n, ttl = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local found = redis.call("MGET", unpack(KEYS))
local mine, own, other, tags = {}, 0, nil, ""
for i = 1, n do
if found[i] and string.sub(found[i], from) == string.sub(value, from) then
mine[#mine + 1], own = i, own + 1
tags = tags .. string.sub(found[i], 1, from - 1)
else
other = found[i] and i or other
tags = tags .. string.rep("-", from - 1)
end
end
if op == "release" then
if found[n + 1] == value then return {value} end
for _, i in ipairs(mine) do
local first, last = (i - 1) * (from - 1) + 1, i * (from - 1)
if string.sub(tags, first, last) ~= string.sub(ARGV[6], first, last) then return {0, tags} end
end
for _, i in ipairs(mine) do redis.call("DEL", KEYS[i]) end
if KEYS[n + 1] then redis.call("SET", KEYS[n + 1], own == n and value or found[n + 1] or 1, "PX", ttl) end
return {own == n and value or 0}
end
if found[n + 1] or other or (op == "extend" and own < n) then
return {0, other and redis.call("PTTL", KEYS[other]) or -3, other and found[other] or ""}
end
local fence, kept = tonumber(ARGV[7]), tonumber(ARGV[8])
for i = n + 2, #KEYS do
fence = math.max(fence, tonumber(found[i] or 0) + (op == "acquire" and 1 or 0))
end
if #KEYS > n + 1 then
local time = redis.call("TIME")
kept = kept + math.max(0, fence - time[1] * 1e3 - math.floor(time[2] / 1e3))
end
fence = string.format("%.0f", fence)
for i = n + 2, #KEYS do
redis.call("SET", KEYS[i], fence, "PX", string.format("%.0f", kept), "GET")
end
tags = ""
for i = 1, n do
local text = found[i]
if ttl == 0 then
text = text or ""
elseif not text or op == "extend" and from == 1 then
text = ARGV[6]
redis.call("SET", KEYS[i], text, "PX", ttl, "GET")
else
local isShared = string.sub(text, 1, 1) == "s"
if text ~= value and not (isShared and op == "extend") then
local joins = isShared and tonumber(string.sub(text, 26, 33)) or 0
text = "s" .. string.sub(text, 2, 25) .. string.format("%08.0f", (joins + 1) % 1e8) .. string.sub(value, from)
end
redis.call("SET", KEYS[i], text, "PX", math.max(redis.call("PTTL", KEYS[i]), ttl))
end
tags = tags .. string.sub(text, 1, from - 1)
end
return {value, fence, from > 1 and tags or nil}`,
  sha: {
    redis: "55fc29fef55c3de29fb79280d85b5dd54734461a",
    upstash: "b21e8672cdded0b695b2b7e942b3cf724d9a6dbc",
  },
};
