// Generated from cell.lua by `node tools/lua.mjs`. Change it there.
import type { Script } from "./script.ts";

export const cellScript: Script = {
  source: `local op, token, n, ttl = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local fence, kept = tonumber(ARGV[6]), tonumber(ARGV[7])
local tombstone, counters = n + 1, n + 2
local spent = 0
local function expected(i) return ARGV[6 + 2 * i] end
local function following(i) return ARGV[7 + 2 * i] end
local function run(...)
spent = spent + 1
return redis.call(...)
end
local found = run("MGET", unpack(KEYS))
if op == "end" then
if found[tombstone] == token then return {token, spent, string.rep("t", n)} end
local hits, gone = "", {}
for i = 1, n do
local isOwn = found[i] == expected(i)
hits = hits .. (isOwn and "t" or "f")
if isOwn and following(i) == "" then gone[#gone + 1] = KEYS[i] end
if isOwn and following(i) ~= "" then run("SET", KEYS[i], following(i), "PX", ttl) end
end
if #gone > 0 then run("DEL", unpack(gone)) end
if KEYS[tombstone] then
local foundAll = not string.find(hits, "f")
run("SET", KEYS[tombstone], foundAll and token or found[tombstone] or 1, "PX", ARGV[5])
end
return {token, spent, hits}
end
local keeps, isNew = op == "keep", false
for i = 1, n do
local own = keeps and expected(i) or following(i)
if found[i] ~= own and (found[i] or keeps) then
local remaining = -2
if found[i] and not keeps and following(i) == token then remaining = run("PTTL", KEYS[i]) end
return {0, spent, i, remaining, found[i] or ""}
end
isNew = isNew or not found[i]
end
if found[tombstone] then return {0, spent, 0, -2, ""} end
for i = counters, #KEYS do
fence = math.max(fence, tonumber(found[i] or 0) + (op == "claim" and isNew and 1 or 0))
end
if KEYS[counters] then
local time = run("TIME")
kept = kept + math.max(0, fence - time[1] * 1e3 - math.floor(time[2] / 1e3))
end
fence = string.format("%.0f", fence)
for i = counters, #KEYS do run("SET", KEYS[i], fence, "PX", string.format("%.0f", kept), "GET") end
for i = 1, n do
if ttl ~= "0" and (keeps or not found[i]) then run("SET", KEYS[i], following(i), "PX", ttl, "GET") end
end
return {token, spent, fence}`,
  sha: {
    redis: "916b0f9eaeface9ef3dd951a43f5e04df74dfd82",
    upstash: "162926e56d912536d29a2e1cdbf784dae5375cb6",
  },
};
