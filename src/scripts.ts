/** A Lua script and its SHA-1 in each dialect (a test recomputes them; `scripts/script-hashes.mjs` writes them). */
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
 * What one endpoint does with a register: one value at n keys, all or none.
 *
 * KEYS: the n keys; where there is one, the tombstone; behind it the fence counters, if any.
 *
 * ARGV:
 * 1. what to do:
 *    `take` the keys unless another value stands at one of them or the tombstone is there;
 *    `renew` them if all are the value's, and never create one (with ttl 0 it only looks);
 *    `drop` those that are the value's, and leave a tombstone for `ttl` if one is named;
 *    `look` at the first key and the third, a counter;
 * 2. the value;
 * 3. the character at which the comparison of values begins: 1 compares them whole, else it compares owners;
 * 4. n; 5. ttl in ms; 6. the value to leave there;
 * 7. the least fence; 8. the counters' ttl in ms. `take` draws one more than the largest counter, or the least
 *    fence if that is larger; `renew` raises the counters to the least fence.
 *
 * Replies: {value, fence} when it did so. The value is unguessable, so no client in between can invent this
 * reply. {0, ms until the obstacle expires, the value that stands there} when it did not. `look`: {value or "",
 * ms, counter or ""}.
 *
 * Where another handle of the owner took it, the value becomes the owner's alone, with zeros before it: both count
 * on it now, so that neither may withdraw it as exactly its own.
 *
 * Only a `renew` of a whole value shortens a ttl. Another handle of the owner may count on the longer one, and a
 * `take` that is executed a second time, late, must not undo an extension.
 *
 * Executing it twice does no more than executing it once. Numbers are printed with %.0f: Lua would write
 * 1.79e+12.
 */
export const registerScript: Script = {
  source: `local op, value, from, n, ttl = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5]
local found = redis.call("MGET", unpack(KEYS))
if op == "look" then
  return {found[1] or "", redis.call("PTTL", KEYS[1]), found[3] or ""}
end
local own, other = 0, nil
for i = 1, n do
  if found[i] and string.sub(found[i], from) == string.sub(value, from) then
    own = own + 1
    if op == "drop" then redis.call("DEL", KEYS[i]) end
  elseif found[i] then
    other = i
  end
end
if op == "drop" then
  if KEYS[n + 1] then redis.call("SET", KEYS[n + 1], 1, "PX", ttl) end
  return {own == n and value or 0}
end
if found[n + 1] or other or (op == "renew" and own < n) then
  return {0, other and redis.call("PTTL", KEYS[other]) or -3, other and found[other] or ""}
end
local fence = tonumber(ARGV[7])
for i = n + 2, #KEYS do
  fence = math.max(fence, tonumber(found[i] or 0) + (op == "take" and 1 or 0))
end
fence = string.format("%.0f", fence)
for i = n + 2, #KEYS do
  redis.call("SET", KEYS[i], fence, "PX", ARGV[8])
end
for i = 1, ttl == "0" and 0 or n do
  if not found[i] or op == "renew" and from == "1" then
    redis.call("SET", KEYS[i], ARGV[6], "PX", ttl)
  elseif found[i] ~= value then
    local shared = string.rep("0", from - 1) .. string.sub(value, from)
    redis.call("SET", KEYS[i], shared, "PX", math.max(redis.call("PTTL", KEYS[i]), tonumber(ttl)))
  elseif redis.call("PTTL", KEYS[i]) < tonumber(ttl) then
    redis.call("PEXPIRE", KEYS[i], ttl)
  end
end
return {value, fence}`,
  sha: {
    redis: "3a76a2263c3d220060428392c624b3ed3b06a6ea",
    upstash: "2fdc9b8491acffb4d5b6fd263f948bdafa228439",
  },
};
