// Every Lua script of the lock client and of the register, with the SHA-1 that Redis knows each by.
//
// Rules they all keep:
// - Every key is in KEYS, and numbers are printed with %.0f: Lua would write 1.79e+12.
// - Success is an echo of the caller's own value, which nobody can guess: a client in between that invents a
//   reply cannot invent that one. Anything else is a refusal.
// - Executing one twice does no more than executing it once.
// - `from` is the first character at which two values are compared: 1 compares them whole, 34 compares what
//   follows the nonce, the owner's token (see grant.ts).

/** A Lua script and its SHA-1 in each dialect (a test recomputes them). */
export interface Script {
  readonly source: string;
  readonly sha: { readonly redis: string; readonly upstash: string };
}

/**
 * First line of every script in the `upstash` dialect: without it Upstash runs a script under a lock on the
 * whole database. Redis 7 refuses the flag.
 */
export const upstashFlag = "#!lua flags=allow-key-locking\n";

/**
 * Takes a register unless another value stands in it.
 *
 * KEYS: register. ARGV: value, ttl.
 * Replies with the value that stands there afterwards: the caller's own when it was granted, now or before.
 */
export const takeScript: Script = {
  source: `local held = redis.call("GET", KEYS[1])
if held then return held end
redis.call("SET", KEYS[1], ARGV[1], "PX", ARGV[2])
return ARGV[1]`,
  sha: {
    redis: "ee52ced0a71c1284d5582252d3ea4a0d4cca3f1b",
    upstash: "bf255d6121b49d6b73595b6f0757b3a33d2259f8",
  },
};

/**
 * Replaces a register's value and ttl if it still has the old one.
 *
 * KEYS: register. ARGV: old value, new value, ttl. Replies with the new value, or 0.
 */
export const replaceScript: Script = {
  source: `if redis.call("GET", KEYS[1]) ~= ARGV[1] then return 0 end
redis.call("SET", KEYS[1], ARGV[2], "PX", ARGV[3])
return ARGV[2]`,
  sha: {
    redis: "e4dee28f1fe85aaa12f7c1b85ce83b01ac69d63a",
    upstash: "3d3bfa4ba2b3b3e4fbfd4fdeb4d6d8d87049a1db",
  },
};

/**
 * Takes several keys, all or none; a key that is the same owner's already counts as taken, and its ttl is
 * never shortened. With counters, draws the fence: one more than the largest, or the client's clock if that
 * is larger.
 *
 * KEYS: n locks, tombstone, then n fence counters or none. ARGV: value, ttl, from, n, clock, fence retention.
 * Replies {value, fence}; {0, ms until the obstacle expires}; {0, -3} when the value was dropped before.
 */
export const grantScript: Script = {
  source: `local value, ttl, from, n = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local found = redis.call("MGET", unpack(KEYS))
if found[n + 1] then return {0, -3} end
for i = 1, n do
  if found[i] and string.sub(found[i], from) ~= string.sub(value, from) then
    return {0, redis.call("PTTL", KEYS[i])}
  end
end
local fence = tonumber(ARGV[5])
for i = n + 2, #KEYS do
  fence = math.max(fence, tonumber(found[i] or 0) + 1)
end
fence = string.format("%.0f", fence)
for i = n + 2, #KEYS do
  redis.call("SET", KEYS[i], fence, "PX", ARGV[6])
end
for i = 1, n do
  if not found[i] then
    redis.call("SET", KEYS[i], value, "PX", ttl)
  elseif redis.call("PTTL", KEYS[i]) < tonumber(ttl) then
    redis.call("PEXPIRE", KEYS[i], ttl)
  end
end
return {value, fence}`,
  sha: {
    redis: "bec23b8f87b83de70ec2e043003bd924fafc532c",
    upstash: "07d6c06f864b483ffff1ae0ede30b5dd77d4dd4c",
  },
};

/**
 * Raises the fence counters while the locks are still the value's.
 *
 * KEYS: n locks, n fence counters. ARGV: value, from, fence, fence retention. Replies with the value, or 0.
 */
export const raiseScript: Script = {
  source: `local found, n = redis.call("MGET", unpack(KEYS)), #KEYS / 2
for i = 1, n do
  if string.sub(found[i] or "", ARGV[2]) ~= string.sub(ARGV[1], ARGV[2]) then return 0 end
end
for i = n + 1, #KEYS do
  if tonumber(found[i] or 0) < tonumber(ARGV[3]) then
    redis.call("SET", KEYS[i], ARGV[3], "PX", ARGV[4])
  end
end
return ARGV[1]`,
  sha: {
    redis: "df27e2edabf85d14f5ba19a50779390a3a6c2e59",
    upstash: "91344f2196eb10d4284328066b8f30f5f59c9bf1",
  },
};

/**
 * Renews all locks if all are still the value's; never creates one. An owner's shared lock (from > 1) is
 * never shortened: another handle may count on it. With ttl 0 it only looks.
 *
 * KEYS: locks. ARGV: value, from, ttl. Replies with the value, or 0.
 */
export const renewScript: Script = {
  source: `local found, ttl = redis.call("MGET", unpack(KEYS)), tonumber(ARGV[3])
for i = 1, #KEYS do
  if string.sub(found[i] or "", ARGV[2]) ~= string.sub(ARGV[1], ARGV[2]) then return 0 end
end
for i = 1, #KEYS do
  if ttl > 0 and (ARGV[2] == "1" or redis.call("PTTL", KEYS[i]) < ttl) then
    redis.call("PEXPIRE", KEYS[i], ARGV[3])
  end
end
return ARGV[1]`,
  sha: {
    redis: "7da59b5f97696fe16c8e1aae07464fc40cc6c5f4",
    upstash: "7d6ee2305ec86d78f734d0eb20c6de6f985ee868",
  },
};

/**
 * Drops each lock that is still the value's. With a retention it also leaves a tombstone: a grant of this
 * value that arrives later is refused.
 *
 * KEYS: locks, and the tombstone when there is a retention. ARGV: value, from, retention of the tombstone.
 * Replies with the value when all were there, else 0.
 */
export const dropScript: Script = {
  source: `local found, reply = redis.call("MGET", unpack(KEYS)), ARGV[1]
for i = 1, ARGV[3] and #KEYS - 1 or #KEYS do
  if string.sub(found[i] or "", ARGV[2]) == string.sub(ARGV[1], ARGV[2]) then
    redis.call("DEL", KEYS[i])
  else
    reply = 0
  end
end
if ARGV[3] then redis.call("SET", KEYS[#KEYS], 1, "PX", ARGV[3]) end
return reply`,
  sha: {
    redis: "0de184ac3cc53b11666d6fa3eb95753e9ed07c07",
    upstash: "ec2afa1ac6fdeec2d596d01c67f41a69aa48b6da",
  },
};

/**
 * What stands at a resource.
 *
 * KEYS: lock, fence counter. Replies {value or "", remaining ttl in ms, fence or ""}.
 */
export const inspectScript: Script = {
  source: `local found = redis.call("MGET", unpack(KEYS))
return {found[1] or "", redis.call("PTTL", KEYS[1]), found[2] or ""}`,
  sha: {
    redis: "ac46b17e21e1c2f7137fdaf9eab1da69d69a7fa2",
    upstash: "ffc8444cf56c8d1c91d0d4a1735897b7de248616",
  },
};
