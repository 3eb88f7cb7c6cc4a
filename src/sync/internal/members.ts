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

// A lock that the members of a group hold together. Each member has its own deadline, so that one whose process died
// expires while the others go on. Members are a set of nonces, not a count: a request that is executed again changes
// nothing, and a rollback removes exactly what its round acquired.

/** A writer waits. */
export interface Announcement {
  /** ms until it expires, unless its writer sends another request. */
  readonly expiry: number;
  /** Even if the request is granted. */
  readonly always: boolean;
}

interface MemberRules {
  /** Those that hold it together. It is asked for in each round. */
  readonly group: () => string;
  /** Its kind is also the kind of the key. */
  readonly waiter: Waiter;
  /** The kind of the key that announces writers. While one waits, readers are refused. Default: there are none. */
  readonly writers?: string;
  /** A writer's announcement in the next round. Undefined: it does not wait any more. Default: it is no writer. */
  readonly announces?: () => Announcement | undefined;
}

/**
 * Its value is the nonce and the group. A release that no late request can follow keeps its tombstone briefly, so that
 * its second execution repeats the reply, and a second execution of the acquire is refused.
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
  /** As a quorum has granted it. */
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
      // A holder asks everywhere, because its announcement may stand at endpoints that refused it, and others may
      // listen there.
      if (!isHolder && claim.hasDoneNothing) return Promise.resolve({ outcome: "lost" });
      const isLast = isHolder && claim.isOver;
      // For longer than its reply is waited for.
      const retention = isLast ? Math.ceil(2 * timeout) : tombstoneRetention;
      // The next round of a waiting writer needs its announcement.
      const writer = isHolder || !announces?.() ? writerOf(cell) : "";
      const left = writer && !isLast ? [tombstone(writer)] : [];
      const keys = [cell.tombstone!, ...others, ...left];
      const args = ["release", cell.value, retention, writer, 0, 0, ...(isAnnounced ? channel : [])];
      // A writer that gives up has no nonce, and its tombstone is its announcement's.
      return requestMember(call, [key, ...new Set(keys)], args);
    },
    isRestorable: false,
    fence: undefined,
    waiter,
  };
}

/** @param args begin with the operation and the value */
export async function requestMember(
  call: Ask,
  keys: readonly string[],
  args: readonly (string | number)[],
): Promise<CellAnswer> {
  const [operation, value] = args;
  // `remaining`: of the obstacle.
  const [echo, remaining] = itemsOf(await runScript(call, memberScript, keys, args));
  if (echo === value && remaining === undefined) return { outcome: "granted" };
  if (echo === 0 && operation !== "acquire" && remaining === undefined) return { outcome: "lost" };
  if (echo === 0 && operation === "acquire" && isInteger(remaining) && remaining >= 0) {
    return { outcome: "held", retryAfter: remaining };
  }
  throw unexpectedReply();
}
