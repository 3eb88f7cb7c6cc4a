-- The claim of an idempotency key together with locks, at one endpoint: a record, n locks and their fences, in one request.
--
-- KEYS: the record; then n locks; then their n fence counters, where a fence is drawn or raised.
--
-- ARGV:
-- 1. the operation:
--    `begin`: write the pending record and the locks, all or none, and draw a fence;
--    `extend` the ttls of all of them, or of none; ttl 0 only checks. Raises the counters to the lowest fence;
--    `end`: write the next record in place of the pending one, or delete it, and delete the locks. Each key is decided
--    by its own value
-- 2. the pending record
-- 3. the locks' value
-- 4. n
-- 5. ttl in ms
-- 6. the next record, `""` for none
-- 7. the lowest fence
-- 8. for how many ms a counter outlives the moment that its number names
-- 9. `1` where the endpoint has compare-and-set commands
--
-- Replies, with the number of commands that the script has executed:
-- {the locks' value, commands, fence}: done
-- {0, commands}: `extend` was refused, or `end` found another record
-- {0, commands, "r", the record in the way}, {0, commands, "l", ms until the lock in the way expires, its value}: `begin`
--    was refused

local op, pending, token, n, ttl, nextRecord = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5], ARGV[6]
local least, retention, isNative = tonumber(ARGV[7]), tonumber(ARGV[8]), ARGV[9] == "1"
local spent = 0

local function run(...)
  spent = spent + 1
  return redis.call(...)
end

-- Writes, and returns what was there: SET with NX and GET does it with one command that is billed. Redis before 7.0 does
-- not have both together, and refuses before it does anything.
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
    -- An error: the endpoint does not have them after all.
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

-- As in cell.lua: a fence of the future is remembered until it is the past.
local function kept() return text(retention + math.max(0, fence - now)) end

if op == "extend" then
  -- MGET finds nothing at a key of another type. SET with GET fails there, with Redis's own error.
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
    -- Only what it has just written: what it found as its own may be what an earlier execution has written, and its run
    -- may rely on it.
    if #fresh > 0 then run("DEL", unpack(fresh)) end
    return {0, spent, i == 1 and "r" or "l", why, i > 1 and other or nil}
  end
end
-- Counters are written last, when nothing can refuse any more.
clock()
local highest = fence
for i = n + 2, #KEYS do
  local old = put(KEYS[i], text(fence), kept())
  local drawn = tonumber(old or 0)
  -- Not a number: it is put back, and the client sees that the reply has no fence.
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
return {token, spent, text(fence)}
