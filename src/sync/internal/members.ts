import type { Call } from "../../endpoints/call.ts";
import type { LockStrategy } from "../../lock/acquire.ts";
import type { Settings } from "../../lock/options.ts";
import { keyOf } from "../../redis/keys.ts";
import type { Register, RegisterAnswer } from "../../redis/register.ts";
import { runScript, type Script, unexpectedReply } from "../../redis/script.ts";
import { tokenLength } from "../../runtime.ts";

// Who holds something together: the members of one group. Each is held on its own, with a deadline of its own, so that
// one who dies frees what was his while the others go on. Members are a set of nonces and not a count: a request that
// is executed again changes nothing, and a round in vain leaves nothing.

/**
 * What one endpoint does with a member. Its group is what follows the nonce in its value.
 *
 * KEYS: the members, a sorted set with their deadlines by this endpoint's clock, in ms since 1970; the tombstones;
 * behind them, where writers are announced, their announcements, a set of the same kind.
 *
 * ARGV:
 * 1. what to do:
 *    `acquire` it unless a member of another group or a tombstone is there, or, for one who has no announcement of his
 *    own, anybody's announcement;
 *    `extend` its deadline if it is there, and never create it (with ttl 0 it only looks);
 *    `release` it, and the announcement, and leave the tombstones for `ttl`; the first says whether it was there;
 * 2. the member; 3. the character at which its group begins; 4. ttl in ms; 5. how many tombstones there are;
 * 6. the announcement of one who takes, `""` for none; 7. `1`: announce him even if he is not refused; 8. for how long,
 * in ms.
 *
 * Replies: {member} when it did so; the nonce is unguessable, so no client in between can invent this reply. {0, ms
 * until the last obstacle ends} when it was not taken; {0} when it was not there.
 *
 * Members of two groups never stand together, so the one with the last deadline speaks for all. Only a renewal
 * shortens a deadline: a take that is executed a second time, late, must not undo an extension. Whoever is a member
 * already is not refused for an announcement: it came later, and what is asked is an earlier execution's question. Nor
 * for a tombstone, which is then the announcement's: who is told of a refusal withdraws nothing.
 *
 * A drop that is executed a second time recognises the first one by the tombstone, and says the same.
 */
export const memberScript: Script = {
  source: `local op, member, from, ttl, id = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[6]
local time = redis.call("TIME")
local now = time[1] * 1e3 + math.floor(time[2] / 1e3)
local waiting = KEYS[2 + ARGV[5]]
local function last(key)
  local found = redis.call("ZRANGE", key, -1, -1, "WITHSCORES")
  return tonumber(found[2] or 0) - now, found[1]
end
local function put(key, how, name, ms, left)
  redis.call("ZREMRANGEBYSCORE", key, "-inf", string.format("%.0f", now))
  redis.call("ZADD", key, how, string.format("%.0f", now + ms), name)
  redis.call("PEXPIREAT", key, string.format("%.0f", now + math.max(ms, left)))
end
if op ~= "acquire" then
  local found = tonumber(redis.call("ZSCORE", KEYS[1], member) or 0) > now
  if op == "release" then
    if not found and ARGV[5] ~= "0" then found = redis.call("GET", KEYS[2]) == "freed" end
    redis.call("ZREM", KEYS[1], member)
    if waiting then redis.call("ZREM", waiting, id) end
    for i = 2, 1 + ARGV[5] do redis.call("SET", KEYS[i], found and "freed" or 1, "PX", ttl) end
  elseif found and ttl > 0 then
    put(KEYS[1], "XX", member, ttl, last(KEYS[1]))
  end
  return {found and member or 0}
end
if redis.call("EXISTS", unpack(KEYS, 2, 1 + ARGV[5])) > 0 then
  if tonumber(redis.call("ZSCORE", KEYS[1], member) or 0) > now then return {member} end
  return {0, 0}
end
local left, other = last(KEYS[1])
local refused = 0
if left > 0 and string.sub(other, from) ~= string.sub(member, from) then refused = left end
if waiting and id == "" then
  refused = math.max(refused, (last(waiting)))
  if refused > 0 and redis.call("ZSCORE", KEYS[1], member) then refused = 0 end
elseif waiting and (refused > 0 or ARGV[7] == "1") then
  put(waiting, "GT", id, tonumber(ARGV[8]), (last(waiting)))
end
if refused > 0 then return {0, refused} end
put(KEYS[1], "GT", member, ttl, left)
return {member}`,
  sha: {
    redis: "e8d5163f11a55f2a02e107c108ed3651820a7809",
    upstash: "54f28dc7b315e7587873fe80cb7e92605b4cc68f",
  },
};

/** Where writers that wait are announced; `own` is that of the one who asks. */
export interface Announcements {
  readonly key: string;
  readonly own?: Announcement | undefined;
}

/** A writer's announcement: the same in all rounds of one acquire, and nobody else's. */
export interface Announcement {
  readonly id: string;
  /** Remembers that it was taken back, so that no late request announces it again. */
  readonly tombstone: string | undefined;
  /** How long it stands unless its writer asks again, in ms. */
  readonly expiry: number;
}

/** What members are of. */
export interface Membership {
  /** Where they stand. */
  readonly key: string;
  /** The name that tombstones have in common. */
  readonly tombstones: string;
  /** How long a drop remembers that it freed a member, in ms: longer than its reply is waited for. */
  readonly memory: number;
}

/** The members of a synchronizer. */
export function membershipOf({ prefix, timeout }: Settings, kind: string, name: string): Membership {
  return {
    key: keyOf(prefix, kind, name),
    tombstones: keyOf(prefix, "void", name),
    memory: Math.ceil(2 * timeout),
  };
}

/** A strategy for membership in a group, which is the owner of the grant; announcements are heeded. */
export function memberStrategy(membership: Membership, announcements?: Announcements): LockStrategy {
  return {
    keys: () => [membership.key],
    acquire: (call, register, ttl) => acquireMember(call, register, ttl, announcements),
    extend: extendMember,
    release: (call, register, retention) => rollbackMember(call, register, retention, membership),
    afterFailedRound: () => "wait",
  };
}

/**
 * Gives it back on one endpoint. Without a retention, no request for it is under way any more; then the tombstone tells
 * a repeated drop what the first one did, and refuses a repeated take, for as long as anybody hears of either.
 */
export function rollbackMember(
  call: Call,
  register: Register,
  retention: number,
  { tombstones, memory }: Membership,
  announcements?: Announcements,
): Promise<RegisterAnswer> {
  const tombstone = `${tombstones}:${register.value.slice(0, tokenLength)}`;
  // What was announced is taken back; to remember that is of use only to requests under way.
  const own = announcements?.own && { ...announcements.own, tombstone: undefined };
  const given = retention > 0 ? announcements : announcements && { ...announcements, own };
  return releaseMember(call, { ...register, tombstone }, retention || memory, given);
}

/**
 * Takes it on one endpoint, or is refused, and announced there if there is something to announce.
 *
 * @param always also where it is not refused
 */
export function acquireMember(
  call: Call,
  register: Register,
  ttl: number,
  announcements?: Announcements,
  always = false,
): Promise<RegisterAnswer> {
  return operate(call, "acquire", register, ttl, announcements, always);
}

/** Sets its deadline on one endpoint, and never creates it; ttl 0 only looks. */
export function extendMember(call: Call, register: Register, ttl: number): Promise<RegisterAnswer> {
  return operate(call, "extend", register, ttl);
}

/** Gives it back on one endpoint, and takes back the announcement if there is one. */
export function releaseMember(
  call: Call,
  register: Register,
  retention: number,
  announcements?: Announcements,
): Promise<RegisterAnswer> {
  return operate(call, "release", register, retention, announcements);
}

async function operate(
  call: Call,
  operation: "acquire" | "extend" | "release",
  { keys, value, from = 1, tombstone }: Register,
  ttl: number,
  { key, own }: Partial<Announcements> = {},
  always = false,
): Promise<RegisterAnswer> {
  const takes = operation === "acquire";
  const tombstones = ttl > 0 ? [tombstone, own?.tombstone].flatMap((name) => name ?? []) : [];
  const names = [...keys, ...tombstones, ...(key ? [key] : [])];
  const announced = [own?.id ?? "", always ? 1 : 0, own?.expiry ?? 0];
  const words = [operation, value, from, ttl, tombstones.length, ...announced];
  const reply = await runScript(call, memberScript, names, words);
  const [echo, retryAfter] = Array.isArray(reply) && reply.length < 3 ? reply : [];
  const granted = echo === value && retryAfter === undefined;
  const isSane = takes ? Number.isSafeInteger(retryAfter) && retryAfter >= 0 : retryAfter === undefined;
  const refused = echo === 0 && isSane;
  if (!granted && !refused) throw unexpectedReply();
  // What Upstash bills beside the script itself.
  const { cost } = call;
  // One that is not there is looked for among the tombstones.
  if (operation === "release") cost.commands += names.length + (granted || tombstones.length === 0 ? 2 : 3);
  else if (takes) cost.commands += granted ? 6 : 3;
  else cost.commands += granted && ttl > 0 ? 6 : 2;
  if (takes && key && !own) cost.commands += granted ? 1 : 2;
  if (takes && own && (refused || always)) cost.commands += 4;
  if (granted) return { outcome: "granted" };
  return takes ? { outcome: "held", retryAfter } : { outcome: "lost" };
}
