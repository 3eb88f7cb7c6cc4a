import type { Ask } from "../../endpoints/ask.ts";
import type { Settings } from "../../lock/options.ts";
import { type Protocol, tombstoneOf, withoutTombstone } from "../../lock/protocol.ts";
import type { Waiter } from "../../lock/wake-up.ts";
import { type Cell, type CellAnswer, tombstoneRetention } from "../../redis/cell.ts";
import { keyOf } from "../../redis/keys.ts";
import { runScript, unexpectedReply } from "../../redis/script.ts";
import { tokenLength } from "../../runtime.ts";
import { channelOf } from "../../wake-up/channel.ts";
import { memberScript } from "./member.lua.ts";
import { isInteger, itemsOf } from "./reply.ts";

// A lock that several hold together: the members of one group. Each member has its own deadline, so that one whose
// process died expires while the others go on. Members are a set of nonces, not a count: a request that is executed
// again changes nothing, and the rollback of a failed round removes exactly what that round acquired.

/** What the request of a writer that waits announces. */
export interface Announcement {
  /** ms until it expires, unless its writer sends another request. */
  readonly expiry: number;
  /** Whether it is also made where the request is granted. */
  readonly always: boolean;
}

/** Who a member is, and who waits. */
interface MemberRules {
  /** Those that hold it together. It is asked for in each round. */
  readonly group: () => string;
  /** Those that wait. Their kind is also that of the key. */
  readonly waiter: Waiter;
  /** The kind of the key at which waiting writers are announced. While one is, readers are refused. Default: there are none. */
  readonly writers?: string;
  /** A writer's announcement in the next round; undefined: it does not wait any more. Default: it is no writer. */
  readonly announces?: () => Announcement | undefined;
}

/**
 * A member of a group.
 *
 * Its value is the nonce and the group. A release that no late request can follow keeps its tombstone briefly: it lets a
 * second execution reply what the first one did, and refuses a second execution of the acquire.
 */
export function memberOf(
  { prefix, timeout, wakeUp }: Settings,
  name: string,
  { group, waiter, writers, announces }: MemberRules,
): Protocol {
  const keys = [waiter.kind, ...(writers ? [writers] : [])].map((kind) => keyOf(prefix, kind, name));
  const channel = wakeUp && channelOf(prefix, waiter.kind, name);
  /** The value that a quorum has granted. */
  let held: string | undefined;
  const writerOf = ({ value }: Cell) => (announces ? value.slice(tokenLength) : undefined);
  const leftBy = (writer: string) => tombstoneOf(prefix, [name], writer);
  return {
    cell: (nonce) => ({ keys, value: nonce + group(), tombstone: tombstoneOf(prefix, [name], nonce) }),
    claim(call, cell, ttl) {
      const writer = writerOf(cell);
      const announcement = announces?.();
      const left = announcement && leftBy(writer!);
      return requestMember(call, "acquire", cell, { ttl, writer, left, ...announcement });
    },
    confirm(_, { value }) {
      held = value;
      return undefined;
    },
    extend: (call, cell, ttl) => requestMember(call, "extend", withoutTombstone(cell), { ttl }),
    release(call, cell, claim, isAnnounced) {
      const isHolder = cell.value === held;
      // A holder asks everywhere: where it was refused, its announcement may stand, and others may listen.
      if (!isHolder && claim.hasDoneNothing) return Promise.resolve({ outcome: "lost" });
      // The next round of a writer that waits needs its announcement.
      const writer = isHolder || !announces?.() ? writerOf(cell) : undefined;
      const isLast = isHolder && claim.isOver;
      return requestMember(call, "release", cell, {
        // It is remembered for longer than its reply is waited for.
        ttl: isLast ? Math.ceil(2 * timeout) : tombstoneRetention,
        writer,
        left: writer && !isLast && cell.tombstone !== leftBy(writer) ? leftBy(writer) : undefined,
        channel: isAnnounced ? channel : undefined,
      });
    },
    isRestorable: false,
    fence: undefined,
    waiter,
  };
}

/** What a request says beside the member. */
export interface MemberDetails extends Partial<Announcement> {
  /** ms until its deadline, or for a release, for which its tombstones are kept. */
  readonly ttl: number;
  /** The group of a writer: what an acquire announces, or a release removes the announcement of. */
  readonly writer?: string | undefined;
  /** The tombstone of its announcement. */
  readonly left?: string | undefined;
  /** The channel on which those that wait are told of a release. Default: nobody is. */
  readonly channel?: string | undefined;
}

/**
 * Sends a request of a member to one endpoint: to acquire, which announces a writer that is refused; to extend, which never
 * creates the member, and with ttl 0 only looks; or to release.
 */
export async function requestMember(
  call: Ask,
  operation: "acquire" | "extend" | "release",
  { keys: [members, ...writers], value, tombstone }: Cell,
  { ttl, writer = "", left, expiry = 0, always = false, channel }: MemberDetails,
): Promise<CellAnswer> {
  const names = [members!, ...(tombstone ? [tombstone, ...writers] : []), ...(left ? [left] : [])];
  const args = [operation, value, ttl, writer, expiry, always ? 1 : 0, ...(channel ? [channel] : [])];
  // The time until the obstacle expires.
  const [echo, remaining] = itemsOf(await runScript(call, memberScript, names, args));
  if (echo === value && remaining === undefined) return { outcome: "granted" };
  if (echo === 0 && operation !== "acquire" && remaining === undefined) return { outcome: "lost" };
  if (echo === 0 && operation === "acquire" && isInteger(remaining) && remaining >= 0) {
    return { outcome: "held", retryAfter: remaining };
  }
  throw unexpectedReply();
}
