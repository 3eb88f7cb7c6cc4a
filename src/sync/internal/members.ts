import type { Ask } from "../../endpoints/ask.ts";
import type { Settings } from "../../lock/options.ts";
import { type Protocol, tombstoneOf } from "../../lock/protocol.ts";
import type { Waiter } from "../../lock/wake-up.ts";
import { type Cell, type CellAnswer, tombstoneRetention } from "../../redis/cell.ts";
import { keyOf } from "../../redis/keys.ts";
import { runScript, unexpectedReply } from "../../redis/script.ts";
import { tokenLength } from "../../runtime/runtime.ts";
import { channelOf } from "../../wake-up/channel.ts";
import { memberScript } from "./member.lua.ts";
import { isInteger, itemsOf } from "./reply.ts";

// A lock that several hold together: the members of one group. Each member has its own deadline, so that one whose
// process died expires while the others go on. Members are a set of nonces, not a count: a request that is executed
// again changes nothing, and the rollback of a failed round removes exactly what that round acquired.

/** The announcement of a writer that waits. */
export interface Announcement {
  /** ms until it expires, unless its writer sends another request. */
  readonly expiry: number;
  /** Whether it is also made where the request is granted. */
  readonly always: boolean;
}

/** A member, and its announcement. */
interface MemberRules {
  /** Those that hold it together. It is asked for in each round. */
  readonly group: () => string;
  /** Those that wait. Their kind is also the kind of the key. */
  readonly waiter: Waiter;
  /** The kind of the key at which waiting writers are announced. While one is, readers are refused. Default: there are none. */
  readonly writers?: string;
  /** A writer's announcement in the next round. Undefined: it does not wait any more. Default: it is no writer. */
  readonly announces?: () => Announcement | undefined;
}

/**
 * A member of a group.
 *
 * Its value is the nonce and the group. A release that no late request can follow keeps its tombstone briefly: it lets a
 * second execution repeat the first one's reply, and refuses a second execution of the acquire.
 */
export function memberOf(
  { prefix, timeout, wakeUp }: Settings,
  name: string,
  { group, waiter, writers, announces }: MemberRules,
): Protocol {
  const key = keyOf(prefix, waiter.kind, name);
  const others = writers ? [keyOf(prefix, writers, name)] : [];
  const channel = wakeUp ? [channelOf(prefix, waiter.kind, name)] : [];
  const writerOf = ({ value }: Cell) => (announces ? value.slice(tokenLength) : "");
  const tombstone = (text: string) => tombstoneOf(prefix, [name], text);
  /** The value that a quorum has granted. */
  let held: string | undefined;
  return {
    cell: (nonce) => ({ keys: [key], value: nonce + group(), tombstone: tombstone(nonce) }),
    claim(call, cell, ttl) {
      const writer = writerOf(cell);
      const { expiry = 0, always = false } = announces?.() ?? {};
      const keys = [key, cell.tombstone!, ...others, ...(expiry ? [tombstone(writer)] : [])];
      return requestMember(call, keys, ["acquire", cell.value, ttl, writer, expiry, always ? 1 : 0]);
    },
    confirm(_, { value }) {
      held = value;
      return undefined;
    },
    extend: (call, { value }, ttl) => requestMember(call, [key], ["extend", value, ttl, "", 0, 0]),
    release(call, cell, claim, isAnnounced) {
      const isHolder = cell.value === held;
      // A holder asks everywhere: where it was refused, its announcement may stand, and others may listen.
      if (!isHolder && claim.hasDoneNothing) return Promise.resolve({ outcome: "lost" });
      const isLast = isHolder && claim.isOver;
      // It is remembered for longer than its reply is waited for.
      const retention = isLast ? Math.ceil(2 * timeout) : tombstoneRetention;
      // The next round of a writer that waits needs its announcement.
      const writer = isHolder || !announces?.() ? writerOf(cell) : "";
      const left = writer && !isLast ? [tombstone(writer)] : [];
      const keys = [cell.tombstone!, ...others, ...left];
      const args = ["release", cell.value, retention, writer, 0, 0, ...(isAnnounced ? channel : [])];
      // One that gives up has no nonce, and its tombstone belongs to its announcement.
      return requestMember(call, [key, ...new Set(keys)], args);
    },
    isRestorable: false,
    fence: undefined,
    waiter,
  };
}

/** Sends a request to one endpoint. `keys` and `args`: the script's arguments, which begin with the operation and the value. */
export async function requestMember(
  call: Ask,
  keys: readonly string[],
  args: readonly (string | number)[],
): Promise<CellAnswer> {
  const [operation, value] = args;
  // The time until the obstacle expires.
  const [echo, remaining] = itemsOf(await runScript(call, memberScript, keys, args));
  if (echo === value && remaining === undefined) return { outcome: "granted" };
  if (echo === 0 && operation !== "acquire" && remaining === undefined) return { outcome: "lost" };
  if (echo === 0 && operation === "acquire" && isInteger(remaining) && remaining >= 0) {
    return { outcome: "held", retryAfter: remaining };
  }
  throw unexpectedReply();
}
