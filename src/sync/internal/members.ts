import type { EndpointRequest } from "../../endpoints/endpoint-request.ts";
import type { Settings } from "../../lock/options.ts";
import { channelOf } from "../../lock/wake-up/channel.ts";
import type { Waiter } from "../../lock/wake-up/wake-up.ts";
import type { Cell, CellAnswer } from "../../redis/cell.ts";
import { keyOf } from "../../redis/keys.ts";
import { runScript, type Script, unexpectedReply } from "../../redis/script.ts";
import { tokenLength } from "../../runtime.ts";
import type { HoldStrategy } from "./hold.ts";
import { isInteger, itemsOf } from "./reply.ts";

// A lock that several hold together: the members of one group. Each member has its own deadline, so that one whose
// process died expires while the others go on. Members are a set of nonces, not a count: a request that is executed
// again changes nothing, and the rollback of a failed round removes exactly what that round acquired.

/**
 * Acquires, extends or releases a member on one endpoint. Its group is the part of its value behind the nonce.
 *
 * KEYS: the members, a sorted set by deadline on this endpoint's clock, in ms since 1970; the tombstones; last, for a
 * read-write lock, the announcements of waiting writers, a set of the same kind.
 *
 * ARGV:
 * 1. what to do:
 *    `acquire`: add the member, unless a member of another group or a tombstone is there, or, for a request without an
 *    announcement, any announcement;
 *    `extend`: set its deadline if it is there, never create it (with ttl 0 only look);
 *    `release`: remove it and the announcement, and keep the tombstones for `ttl`; the first tombstone records whether
 *    the member was there;
 * 2. the member; 3. the character at which its group begins; 4. ttl in ms; 5. number of tombstones; 6. announcement to
 * make if refused, `""` for none; 7. `1`: announce even if granted; 8. ttl of the announcement in ms; 9. for a release
 * with wake-ups, the channel of those that wait.
 *
 * A release tells those that can be served now, also where its member was not there: a holder has a quorum, and perhaps not
 * the endpoint at which all listen. Where writers are announced, these draw their turns as soon as there is no
 * member; where none is left, all readers may come. Without announcements, all that wait draw.
 *
 * Replies: {member}: done; the nonce is unguessable, so no client in between can invent this reply. {0, ms until the
 * last obstacle expires}: `acquire` was refused. {0}: the member was not there. With a channel, a release replies one
 * item more: commands called for the message.
 *
 * All members are of one group, so the one with the last deadline represents all. Only an extension shortens a deadline:
 * a late second execution of an acquire must not undo an extension. A member that is there already is not refused for an
 * announcement, which came later: the request is a second execution. Nor is it refused for a tombstone, which is then
 * that of the announcement: a refused request is not rolled back, and the member would stay.
 *
 * A second execution of a release finds the tombstone of the first, and replies the same.
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
local function put(key, how, name, ms, remaining)
  redis.call("ZREMRANGEBYSCORE", key, "-inf", string.format("%.0f", now))
  redis.call("ZADD", key, how, string.format("%.0f", now + ms), name)
  redis.call("PEXPIREAT", key, string.format("%.0f", now + math.max(ms, remaining)))
end
local function tell(removed)
  local free = last(KEYS[1]) <= 0
  if waiting then
    local writers = redis.call("ZCOUNT", waiting, string.format("(%.0f", now), "+inf")
    if writers > 0 and free then
      redis.call("PUBLISH", ARGV[9], writers .. ":w")
    elseif writers == 0 and (free or removed) then
      redis.call("PUBLISH", ARGV[9], "0:r")
    else
      return 2
    end
    return 3
  end
  local subscribers = free and redis.call("PUBSUB", "NUMSUB", ARGV[9])[2] or 0
  if subscribers > 0 then redis.call("PUBLISH", ARGV[9], subscribers) end
  return 1 + (free and 1 or 0) + (subscribers > 0 and 1 or 0)
end
if op ~= "acquire" then
  local found = tonumber(redis.call("ZSCORE", KEYS[1], member) or 0) > now
  if op == "release" then
    if not found and ARGV[5] ~= "0" then found = redis.call("GET", KEYS[2]) == "freed" end
    redis.call("ZREM", KEYS[1], member)
    local removed = waiting and id ~= "" and redis.call("ZREM", waiting, id) == 1
    for i = 2, 1 + ARGV[5] do redis.call("SET", KEYS[i], found and "freed" or 1, "PX", ttl) end
    if ARGV[9] then return {found and member or 0, tell(removed)} end
  elseif found and ttl > 0 then
    put(KEYS[1], "XX", member, ttl, last(KEYS[1]))
  end
  return {found and member or 0}
end
if redis.call("EXISTS", unpack(KEYS, 2, 1 + ARGV[5])) > 0 then
  if tonumber(redis.call("ZSCORE", KEYS[1], member) or 0) > now then return {member} end
  return {0, 0}
end
local remaining, other = last(KEYS[1])
local retryAfter = 0
if remaining > 0 and string.sub(other, from) ~= string.sub(member, from) then retryAfter = remaining end
if waiting and id == "" then
  retryAfter = math.max(retryAfter, (last(waiting)))
  if retryAfter > 0 and redis.call("ZSCORE", KEYS[1], member) then retryAfter = 0 end
elseif waiting and (retryAfter > 0 or ARGV[7] == "1") then
  put(waiting, "GT", id, tonumber(ARGV[8]), (last(waiting)))
end
if retryAfter > 0 then return {0, retryAfter} end
put(KEYS[1], "GT", member, ttl, remaining)
return {member}`,
  sha: {
    redis: "bf4569cb4a0dc23fc3e1d9e1477d56475b9bc6a3",
    upstash: "9965b276cdc14b592b82f683785790c900dacb1f",
  },
};

/** Announcements of the writers that wait for a lock. While there is one, readers are refused. */
export interface Announcements {
  readonly key: string;
  /** The announcement of the writer that sends the request. Default: a reader sends it. */
  readonly own?: Announcement | undefined;
}

/** A writer's announcement. Its id is the same in all rounds of one acquire, and in no other acquire. */
export interface Announcement {
  readonly id: string;
  /** Remembers that it was removed, so that a late request does not make it again. */
  readonly tombstone: string | undefined;
  /** ms until it expires, unless its writer sends another request. */
  readonly expiry: number;
  /** Whether it is also made where the request is granted. Default false. */
  readonly always?: boolean;
}

/** Where the members of one lock are stored. */
export interface Membership {
  readonly key: string;
  /** What the names of its tombstones begin with. */
  readonly tombstones: string;
  /** How long a release remembers that it removed a member, in ms: longer than its reply is waited for. */
  readonly memory: number;
  /** The channel of those that wait. Default: they poll. */
  readonly channel: string | undefined;
}

/** The membership of a lock of this kind and name. */
export function membershipOf(settings: Settings, kind: string, name: string): Membership {
  const { prefix, timeout, wakeUp } = settings;
  return {
    key: keyOf(prefix, kind, name),
    tombstones: keyOf(prefix, "void", name),
    memory: Math.ceil(2 * timeout),
    channel: wakeUp && channelOf(prefix, kind, name),
  };
}

/**
 * A strategy for one member of a group.
 *
 * @param announcements if given, it also waits while a writer is announced there
 */
export function memberStrategy(
  membership: Membership,
  group: string,
  waiter: Waiter,
  announcements?: Announcements,
): HoldStrategy {
  return {
    owner: group,
    waiter,
    keys: () => [membership.key],
    acquire: (call, cell, ttl) => acquireMember(call, cell, ttl, announcements),
    extend: extendMember,
    release: (call, cell, retention, notify) =>
      releaseMember(call, withTombstone(cell, membership), {
        retention: retention || membership.memory,
        // Who waits for it depends on whether writers do.
        ...(notify && { channel: membership.channel, announcements }),
      }),
  };
}

/**
 * The cell with the tombstone of its member. A release that no late request can follow keeps it briefly: it lets a
 * second execution reply what the first one did, and refuses a second execution of the acquire.
 */
export function withTombstone(cell: Cell, { tombstones }: Membership): Cell {
  return { ...cell, tombstone: `${tombstones}:${cell.value.slice(0, tokenLength)}` };
}

/** Acquires on one endpoint. A writer that is refused is announced there. */
export function acquireMember(
  call: EndpointRequest,
  cell: Cell,
  ttl: number,
  announcements?: Announcements,
): Promise<CellAnswer> {
  return operate(call, "acquire", cell, { ttl, announcements });
}

/** Sets the deadline on one endpoint, and never creates the member; ttl 0 only looks. */
export function extendMember(call: EndpointRequest, cell: Cell, ttl: number): Promise<CellAnswer> {
  // Stryker disable next-line StringLiteral: the script extends where the word is neither `acquire` nor `release`
  return operate(call, "extend", cell, { ttl });
}

/** What a release does beside removing the member. */
export interface MemberRelease {
  /** ms that its tombstones are kept. */
  readonly retention: number;
  /** The announcement to remove, if it has one of its own. */
  readonly announcements?: Announcements | undefined;
  /** The channel on which those that wait are told. Default: nobody is. */
  readonly channel?: string | undefined;
}

/** Releases on one endpoint. */
export function releaseMember(
  call: EndpointRequest,
  cell: Cell,
  { retention, ...more }: MemberRelease,
): Promise<CellAnswer> {
  return operate(call, "release", cell, { ttl: retention, ...more });
}

type Operation = "acquire" | "extend" | "release";

interface MemberOperation {
  readonly ttl: number;
  readonly announcements?: Partial<Announcements> | undefined;
  readonly channel?: string | undefined;
}

async function operate(
  call: EndpointRequest,
  operation: Operation,
  { keys, value, compareFrom = 1, tombstone }: Cell,
  { ttl, announcements = {}, channel }: MemberOperation,
): Promise<CellAnswer> {
  const { key, own } = announcements;
  const tombstones = ttl > 0 ? [tombstone, own?.tombstone].flatMap((name) => name ?? []) : [];
  const names = [...keys, ...tombstones, ...(key ? [key] : [])];
  const announced = [own?.id ?? "", own?.always ? 1 : 0, own?.expiry ?? 0];
  const args = [
    operation,
    value,
    compareFrom,
    ttl,
    tombstones.length,
    ...announced,
    ...(channel ? [channel] : []),
  ];
  const reply = await runScript(call, memberScript, names, args);
  // The time until the obstacle expires, or the commands that were called to tell others.
  const [echo, number] = itemsOf(reply, 2);
  const granted = echo === value;
  const hasNumber = channel !== undefined || (operation === "acquire" && !granted);
  const isSane = hasNumber ? isInteger(number) && number >= 0 : number === undefined;
  if ((!granted && echo !== 0) || !isSane) throw unexpectedReply();
  // What Upstash bills beside the script itself.
  const { cost } = call;
  if (operation !== "acquire") {
    // A release looks for a missing member among the tombstones.
    if (operation === "release") {
      const removals = 1 + tombstones.length + (own ? 1 : 0);
      cost.commands += removals + (granted || !tombstones[0] ? 2 : 3) + Number(number ?? 0);
    } else cost.commands += granted && ttl > 0 ? 6 : 2;
    return { outcome: granted ? "granted" : "lost" };
  }
  cost.commands += (granted ? 6 : 3) + announcementCost(announcements, granted);
  return granted ? { outcome: "granted" } : { outcome: "held", retryAfter: Number(number) };
}

/** What Upstash bills for reading or making announcements. */
function announcementCost({ key, own }: Partial<Announcements>, granted: boolean): number {
  if (own) return granted && !own.always ? 0 : 4;
  if (key) return granted ? 1 : 2;
  return 0;
}
