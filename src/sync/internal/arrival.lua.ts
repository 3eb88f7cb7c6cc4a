// Generated from arrival.lua by `node tools/lua.mjs`. Change it there.
import type { Script } from "../../redis/script.ts";

export const arrivalScript: Script = {
  source: `local nonce, to, count, ttl, id, channel = unpack(ARGV)
local all, found, ids = redis.call("HGETALL", KEYS[1]), {}, {}
for i = 1, #all, 2 do
found[all[i]] = all[i + 1]
if #all[i] > 1 then ids[#ids + 1] = all[i] end
end
if (found.n or count) ~= count then return {nonce, "n", tonumber(found.n)} end
local at = found.g or ""
if to ~= "" and to >= at then
local remaining, added = redis.call("PTTL", KEYS[1]), {}
if to > at then
redis.call("DEL", KEYS[1])
at, found, ids, added = to, {}, {}, {"g", to}
end
if not found.n then added[#added + 1], added[#added + 2] = "n", count end
if id ~= "" and not found[id] then
ids[#ids + 1], added[#added + 1], added[#added + 2] = id, id, 1
end
if added[1] then redis.call("HSET", KEYS[1], unpack(added)) end
if channel and added[1] and (added[1] == "g" or #ids == tonumber(count)) then
redis.call("PUBLISH", channel, "0:all")
end
if added[1] or remaining < ttl / 2 then redis.call("PEXPIRE", KEYS[1], math.max(ttl, remaining)) end
end
return {nonce, at, ids}`,
  sha: {
    redis: "a95886ac0dac7613a8e631f7e702af8b7e37afc3",
    upstash: "a31db8a3404b6eb88642db8f673f1f269a9d3c80",
  },
};
