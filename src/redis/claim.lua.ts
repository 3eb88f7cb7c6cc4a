// Generated from claim.lua by `node tools/lua.mjs`. Change it there.
import type { Script } from "./script.ts";

export const claimScript: Script = {
  source: `local op, pending, token, n, ttl, nextRecord = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5], ARGV[6]
local least, retention, isNative = tonumber(ARGV[7]), tonumber(ARGV[8]), ARGV[9] == "1"
local spent = 0
local function run(...)
spent = spent + 1
return redis.call(...)
end
local function put(key, value, ms, ...)
spent = spent + 1
local old = redis.pcall("SET", key, value, "PX", ms, "GET", ...)
if type(old) == "table" then
old = run("GET", key)
if not old or select("#", ...) == 0 then run("SET", key, value, "PX", ms) end
end
return old
end
local function text(number) return string.format("%.0f", number) end
if op == "end" then
if isNative then
local done
if nextRecord == "" then done = redis.pcall("DELEX", KEYS[1], "IFEQ", pending)
else done = redis.pcall("SET", KEYS[1], nextRecord, "IFEQ", pending, "PX", ttl) end
if type(done) ~= "table" or done.ok then
for i = 2, n + 1 do run("DELEX", KEYS[i], "IFEQ", token) end
return {done and done ~= 0 and token or 0, spent + 1}
end
end
local found, gone = run("MGET", unpack(KEYS, 1, n + 1)), {}
for i = 2, n + 1 do
if found[i] == token then gone[#gone + 1] = KEYS[i] end
end
if found[1] == pending then
if nextRecord == "" then gone[#gone + 1] = KEYS[1] else run("SET", KEYS[1], nextRecord, "PX", ttl) end
end
if #gone > 0 then run("DEL", unpack(gone)) end
return {found[1] == pending and token or 0, spent}
end
local fence, now = least, 0
local function clock()
local time = run("TIME")
now = time[1] * 1e3 + math.floor(time[2] / 1e3)
end
local function kept() return text(retention + math.max(0, fence - now)) end
if op == "extend" then
local found = run("MGET", unpack(KEYS))
for i = 1, n + 1 do
if found[i] ~= (i == 1 and pending or token) then return {0, spent} end
end
for i = 1, ttl == "0" and 0 or n + 1 do run("SET", KEYS[i], found[i], "PX", ttl) end
for i = n + 2, #KEYS do fence = math.max(fence, tonumber(found[i] or 0)) end
if #KEYS > n + 1 then clock() end
for i = n + 2, #KEYS do run("SET", KEYS[i], text(fence), "PX", kept(), "GET") end
return {token, spent, text(fence)}
end
local fresh = {}
for i = 1, n + 1 do
local own = i == 1 and pending or token
local other = put(KEYS[i], own, ttl, "NX")
if not other then fresh[#fresh + 1] = KEYS[i] end
if other and other ~= own then
local why = i == 1 and other or run("PTTL", KEYS[i])
if #fresh > 0 then run("DEL", unpack(fresh)) end
return {0, spent, i == 1 and "r" or "l", why, i > 1 and other or nil}
end
end
clock()
local highest = fence
for i = n + 2, #KEYS do
local old = put(KEYS[i], text(fence), kept())
local drawn = tonumber(old or 0)
if not drawn then
run("SET", KEYS[i], old, "PX", kept())
return {token, spent, old}
end
highest = math.max(highest, drawn + 1)
end
if highest > fence then
fence = highest
for i = n + 2, #KEYS do run("SET", KEYS[i], text(fence), "PX", kept()) end
end
return {token, spent, text(fence)}`,
  sha: {
    redis: "060903b18a075788d3f4bb2714d8a7593e890059",
    upstash: "9c0b192d55a274ce422c9699642ad7d0fb348880",
  },
};
