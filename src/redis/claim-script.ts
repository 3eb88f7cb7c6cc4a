import type { Script } from "./script.ts";

/**
 * The claim of an idempotency key together with locks, at one endpoint: a record, n locks and their fences, in one
 * request.
 *
 * KEYS: the record; then n locks; then their n fence counters, where a fence is drawn or raised.
 *
 * ARGV:
 * 1. the operation:
 *    `begin`: write the pending record and the locks, all or none, and draw a fence;
 *    `extend` the ttls of all of them, or of none; ttl 0 only checks. Raises the counters to the lowest fence;
 *    `end`: write the next record in place of the pending one, or delete it, and delete the locks. Each key is decided
 *    by its own value;
 * 2. the pending record; 3. the locks' value; 4. n; 5. ttl in ms; 6. the next record, `""` for none;
 * 7. the lowest fence; 8. for how many ms a counter outlives the moment that its number names;
 * 9. `1` where the endpoint has compare-and-set commands.
 *
 * Replies: {the locks' value, commands, fence} for a success; {0, commands} for a refusal of `extend`, and of `end` where
 * the record was another one. `begin`: {0, commands, "r", the record in the way}, or {0, commands, "l", ms until the lock
 * in the way expires}. Commands: as many as the script has executed.
 *
 * `begin` deletes what it has just written when a later key refuses, and only that: what it finds as its own may be what
 * an earlier execution has written, and its run may rely on it. Counters are written last, and expire as those of
 * the cell do.
 *
 * SET with NX and GET reads and writes with one command that is billed. Redis before 7.0 does not have both together, and
 * refuses before it does anything.
 */
export const claimScript: Script = {
  source: `local op, pending, token, n, ttl = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5]
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
  if ARGV[9] == "1" then
    local done
    if ARGV[6] == "" then done = redis.pcall("DELEX", KEYS[1], "IFEQ", pending)
    else done = redis.pcall("SET", KEYS[1], ARGV[6], "IFEQ", pending, "PX", ttl) end
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
    if ARGV[6] == "" then gone[#gone + 1] = KEYS[1] else run("SET", KEYS[1], ARGV[6], "PX", ttl) end
  end
  if #gone > 0 then run("DEL", unpack(gone)) end
  return {found[1] == pending and token or 0, spent}
end
local fence, now = tonumber(ARGV[7]), 0
local function clock()
  local time = run("TIME")
  now = time[1] * 1e3 + math.floor(time[2] / 1e3)
end
local function kept() return text(tonumber(ARGV[8]) + math.max(0, fence - now)) end
if op == "extend" then
  local found = run("MGET", unpack(KEYS))
  for i = 1, n + 1 do
    if found[i] ~= (i == 1 and pending or token) then return {0, spent} end
  end
  for i = 1, ttl == "0" and 0 or n + 1 do run("SET", KEYS[i], found[i], "PX", ttl) end
  for i = n + 2, #KEYS do fence = math.max(fence, tonumber(found[i] or 0)) end
  if #KEYS > n + 1 then clock() end
  for i = n + 2, #KEYS do run("SET", KEYS[i], text(fence), "PX", kept()) end
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
    return {0, spent, i == 1 and "r" or "l", why}
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
    redis: "26f70aefa59ad1ac9ddb66e9942fd520d60ea9f7",
    upstash: "593a94c0eb655eddd800b7203dce76bfadd263a7",
  },
};
