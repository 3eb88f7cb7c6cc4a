-- Claims, confirms or releases an interval of `once` on one endpoint.
--
-- KEYS:
-- 1. the holder: `value` is a claim, `r<n>:value` a run that was confirmed n times
-- 2. the last run's interval and the one before it, `from-to:from-to`, in ms since 1970 on this endpoint's clock
-- 3. the largest fence
-- 4. the round's tombstone, if there is one
--
-- ARGV:
-- 1. the value
-- 2. what to do, with further arguments:
--    `acquire` a claim, unless there is a holder, or a run began since `every` before the call: 3. ttl in ms. 4. `every` in
--    ms. 5. ms since the call.
--    `extend`: confirm the claim, which makes it a run: 3. `every` in ms. 4. number of the confirmation, 1, 2 …. 5. its fence.
--    6. for how many ms the keys 2 and 3 outlive the interval.
--    `release` the key that has the value, and leave the tombstone: 3. for how many ms
--
-- Replies:
-- {value, the largest fence}: done
-- {0, ms, "c"}: refused for a claim, or a tombstone
-- {0, ms, "r"}: refused for a run that has the interval, or had it when the call was made. `ms`: until it ends
-- {0, number of the key, "f"}: another program has written there
-- {0}, to `extend` and `release`: it does not have the value

local value, op, ms, number, more = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])

-- MGET finds nothing at a key of another type. SET with GET fails there, with Redis's own error.
local found = redis.call("MGET", unpack(KEYS))
local holder, fence = found[1] or "", tonumber(found[3] or 0)
local own, confirmed = string.sub(holder, -#value) == value, string.match(holder, "^r(%d+):")
local last, before = string.match(found[2] or "0-0:0-0", "^(%d+%-%d+):(%d+%-%d+)$")
if op == "release" then
  if own then redis.call("DEL", KEYS[1]) end
  -- A run that is released has not begun: the interval before it is the last one again.
  if own and confirmed and found[2] and last then
    redis.call("SET", KEYS[2], before .. ":" .. before, "KEEPTTL")
  end
  if KEYS[4] then redis.call("SET", KEYS[4], 1, "PX", ms) end
  return {own and value or 0}
end
if not last then return {0, 2, "f"} end
if not fence then return {0, 3, "f"} end
local time = redis.call("TIME")
local now = time[1] * 1e3 + math.floor(time[2] / 1e3)
if op == "extend" then
  if not own then return {0} end
  -- A second execution of a confirmation changes nothing, so no late request prolongs the interval.
  if number > tonumber(confirmed or 0) then
    local interval, kept = string.format("%.0f-%.0f", now, now + ms), ms + ARGV[6]
    redis.call("SET", KEYS[1], "r" .. number .. ":" .. value, "PX", ms)
    redis.call("SET", KEYS[2], interval .. ":" .. (confirmed and before or last), "PX", kept, "GET")
    fence = math.max(fence, more)
    -- A fence from a client whose clock is ahead is remembered until its time has passed.
    kept = string.format("%.0f", kept + math.max(0, fence - now))
    redis.call("SET", KEYS[3], string.format("%.0f", fence), "PX", kept, "GET")
  end
elseif not own then
  if holder ~= "" and not confirmed or found[4] then
    return {0, math.max(0, redis.call("PTTL", KEYS[1])), "c"}
  end
  local from, to = string.match(last, "(%d+)-(%d+)")
  -- Of two lengths the shorter one counts.
  local ends = math.min(to, from + number)
  if confirmed and not found[2] or ends + more > now then return {0, math.max(0, ends - now), "r"} end
  redis.call("SET", KEYS[1], value, "PX", ms, "GET")
end
return {value, found[3] or 0}
