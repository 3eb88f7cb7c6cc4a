-- The mailbox of one name at one endpoint: who has the turn, and which messages wait.
--
-- KEYS: the turn (a token, and the number of its last step); the order (a sorted set: id by stamp); the values (a hash);
-- the tombstone of the token; then a mark for each id of the operation, in its order, which exists once the id is handled.
-- Fields of the values: "last", the largest stamp so far; "next", the message that the holder handles ("?": the first one; "":
-- nobody has the turn); and for each id, v: its value; c: the call that it comes from; n: the number of its failures.
--
-- ARGV begins with the operation, the token, the ttl, the retention, and the ttl of the tombstone (all in ms).
--
-- `post` takes the turn if it is free, and leaves a message: the stamp of the turn, the stamp of the message (0: the same), the
--    most messages that may wait, the id, the call, the value, and the id of a message that is dropped. A call without a
--    message only takes the turn.
-- `step` tells the endpoint of the holder's work: its number, 1 if it closes, four counts (ids that are done, put, left, and
--    left for the first time), these ids in this order, and stamp, call and value of each one that is put. A step that closes
--    lets the turn go if nothing waits but the ids that are left.
-- `look` changes nothing.
-- `keep` renews the turn. With the ttl 0 it only looks.
-- `end` gives the turn back: the ids that are done.
--
-- A reply is {token, state, ...}. The state "foreign" says that another program has written at the turn's key. A handled id is
-- never in the order, in whichever order the requests are executed.

local op, token, ttl, retention, kept = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5]
local turn, order, values, tombstone = unpack(KEYS)
local function arg(i) return tonumber(ARGV[i]) end
local function text(number) return string.format("%.0f", number) end
local function size() return redis.call("ZCOUNT", order, "-inf", "+inf") end

-- MGET finds nothing at a key of another type, as those of the order and the values are.
local found = redis.call("MGET", unpack(KEYS))
local holder, at = string.match(found[1] or "", "^(%w+) (%d+)$")
if found[1] and not holder then return {token, "foreign"} end

local function forget(id, mark)
  -- A full server refuses SET, but not after a command that frees memory.
  redis.call("ZREM", order, id)
  redis.call("HDEL", values, "v" .. id, "c" .. id, "n" .. id)
  redis.call("SET", mark, 1, "PX", retention)
end

local function fail(id)
  local it = redis.call("HMGET", values, "v" .. id, "n" .. id)
  if it[1] then redis.call("HSET", values, "n" .. id, text((it[2] or 0) + 1)) end
end

-- The messages that wait, but for those that are left. At most 32, and few if they are large.
local function look(left, count)
  local flat, entries, bytes = redis.call("ZRANGE", order, 0, 31 + count, "WITHSCORES"), {}, 0
  for i = 1, #flat, 2 do
    local id = flat[i]
    if not left[id] and bytes < 5e5 then
      local it = redis.call("HMGET", values, "v" .. id, "c" .. id, "n" .. id)
      bytes = bytes + #(it[1] or "")
      for _, part in ipairs({id, flat[i + 1], it[2] or "", it[3] or "0", it[1] or ""}) do entries[#entries + 1] = part end
    end
  end
  return entries
end

if op == "post" then
  local stamp, own, id, call, value = arg(6), arg(7), ARGV[9], ARGV[10], ARGV[11]
  if KEYS[6] then forget(ARGV[12], KEYS[6]) end
  if id and found[5] then
    -- A second execution of the one that has taken the turn: if it were refused, its client would not give the turn back.
    if holder == token then return {token, "stored", token, look({}, 0)} end
    return {token, "handled"}
  end
  local name = id or ""
  local it = redis.call("HMGET", values, "last", "next", "v" .. name, "c" .. name)
  local last, begun, known = tonumber(it[1] or 0), it[2] or "", it[3]
  -- It would come before others that were here first. Not said to a second execution of the one that has taken the turn.
  if stamp <= last and holder ~= token then return {token, "late", text(last)} end
  local message = own > 0 and own or stamp
  local takes = not holder and not found[4]
  if id then
    if known then
      local old = tonumber(redis.call("ZSCORE", order, id))
      -- Only the call that it comes from may move it back, and not once another call counts on its place.
      if it[4] == call then message = math.max(old, message) else message, call, value = old, "", known end
    -- Who takes the turn makes room: nobody else might.
    elseif not takes and size() >= arg(8) then
      return {token, "full", redis.call("ZRANGE", order, 0, 0)[1] or ""}
    end
    redis.call("ZADD", order, "GT", text(message), id)
  end
  -- The last holder has neither closed nor ended its turn.
  if takes and begun == "?" then begun = redis.call("ZRANGE", order, 0, 0)[1] or "" end
  if takes and begun ~= "" then fail(begun) end
  local largest = math.max(last, stamp, message)
  local fields = {"last", text(largest), "next", takes and "?" or begun}
  if id then
    for _, part in ipairs({"v" .. id, value, "c" .. id, call}) do fields[#fields + 1] = part end
  end
  redis.call("HSET", values, unpack(fields))
  local time = redis.call("TIME")
  local now = time[1] * 1e3 + math.floor(time[2] / 1e3)
  for _, key in ipairs({order, values}) do
    redis.call("PEXPIRE", key, text(math.max(0, largest - now) + retention))
  end
  if takes then
    redis.call("SET", turn, token .. " 0", "PX", ttl, "GET")
    holder = token
  end
  return {token, "stored", holder or "", holder == token and look({}, 0) or {}}
end

if op == "look" then return {token, "seen", holder or "", text(size())} end

if op == "keep" then
  if holder ~= token then return {token, "lost"} end
  if ttl ~= "0" then redis.call("PEXPIRE", turn, ttl) end
  return {token, "open"}
end

-- Redis deletes an empty order with its expiry. A message must not stay in the order for longer than its value.
local function expire()
  if redis.call("PTTL", values) == -1 then redis.call("PEXPIRE", values, retention) end
  if redis.call("PTTL", order) == -1 then redis.call("PEXPIRE", order, redis.call("PTTL", values)) end
end

local function setNext(id)
  -- A new field: the values had expired.
  if redis.call("HSET", values, "next", id) == 1 then redis.call("PEXPIRE", values, retention) end
end

local function letGo()
  redis.call("DEL", turn)
  setNext("")
end

if op == "end" then
  for i = 6, #ARGV do forget(ARGV[i], KEYS[i - 1]) end
  local isOwn = holder == token or found[4] == "ended"
  if holder == token then letGo() end
  redis.call("SET", tombstone, isOwn and "ended" or found[4] or "void", "PX", kept)
  return {token, isOwn and "open" or "lost"}
end

local done, puts, count, failed = arg(8), arg(9), arg(10), arg(11)
local function doneAt(i) return 11 + i end
local function putAt(i) return doneAt(done) + i end
local function leftAt(i) return putAt(puts) + i end
-- This is true even if the turn is lost.
for i = 1, done do forget(ARGV[doneAt(i)], KEYS[4 + i]) end
if holder ~= token then return {token, found[4] == "closed" and "closed" or "lost"} end
-- A step that is executed after a later one: the holder has gone on meanwhile.
if arg(6) <= tonumber(at) then return {token, "stale"} end

local handled, left, present = {}, {}, 0
for i = 1, puts do
  local id, more = ARGV[putAt(i)], leftAt(count) + 3 * (i - 1)
  if found[4 + done + i] then
    handled[#handled + 1] = id
  elseif not redis.call("ZSCORE", order, id) then
    redis.call("ZADD", order, "GT", ARGV[more + 1], id)
    redis.call("HSET", values, "v" .. id, ARGV[more + 3], "c" .. id, ARGV[more + 2])
  end
end
if puts > 0 then expire() end
for i = 1, count do
  local id = ARGV[leftAt(i)]
  left[id] = true
  if i <= failed then fail(id) end
  if redis.call("ZSCORE", order, id) then present = present + 1 end
end
if ARGV[7] == "1" and size() == present then
  letGo()
  redis.call("SET", tombstone, "closed", "PX", kept)
  return {token, "closed"}
end
redis.call("SET", turn, token .. " " .. ARGV[6], "KEEPTTL")
local entries = look(left, count)
if count > 0 then setNext(entries[1] or "") end
return {token, "open", handled, entries}
