import type { EndpointRequest } from "../../endpoints/endpoint-request.ts";
import type { Settings } from "../../lock/options.ts";
import { channelOf } from "../../lock/wake-up/channel.ts";
import type { Waiter } from "../../lock/wake-up/wake-up.ts";
import type { Cell, CellAnswer } from "../../redis/cell.ts";
import { keyOf } from "../../redis/keys.ts";
import { runScript, unexpectedReply } from "../../redis/script.ts";
import { tokenLength } from "../../runtime.ts";
import type { HoldStrategy } from "./hold.ts";
import { memberScript } from "./member.lua.ts";
import { isInteger, itemsOf } from "./reply.ts";

// A lock that several hold together: the members of one group. Each member has its own deadline, so that one whose
// process died expires while the others go on. Members are a set of nonces, not a count: a request that is executed
// again changes nothing, and the rollback of a failed round removes exactly what that round acquired.

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
    waiter,
    keys: () => [membership.key],
    acquire: (call, cell, ttl) => acquireMember(call, memberOf(cell, group, membership), ttl, announcements),
    extend: (call, { keys, value }, ttl) => extendMember(call, { keys, value: value + group }, ttl),
    release: (call, cell, retention, notify) =>
      releaseMember(call, memberOf(cell, group, membership), {
        retention: retention || membership.memory,
        // Who waits for it depends on whether writers do.
        ...(notify && { channel: membership.channel, announcements }),
      }),
  };
}

/**
 * The member of a group: its value is the cell's nonce and the group. It has a tombstone of its own. A release that no late request can follow keeps it briefly: it lets a
 * second execution reply what the first one did, and refuses a second execution of the acquire. It costs one command of
 * five; permits and fair locks, whose release is a single command, have none.
 */
export function memberOf({ keys, value }: Cell, group: string, { tombstones }: Membership): Cell {
  return { keys, value: value + group, tombstone: `${tombstones}:${value}` };
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
  { keys, value, tombstone }: Cell,
  { ttl, announcements = {}, channel }: MemberOperation,
): Promise<CellAnswer> {
  const { key, own } = announcements;
  const tombstones = ttl > 0 ? [tombstone, own?.tombstone].flatMap((name) => name ?? []) : [];
  const names = [...keys, ...tombstones, ...(key ? [key] : [])];
  const announced = [own?.id ?? "", own?.always ? 1 : 0, own?.expiry ?? 0];
  const args = [
    operation,
    value,
    // Where the group begins, behind the nonce.
    tokenLength + 1,
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
