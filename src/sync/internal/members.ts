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

// Members of a group hold a lock together, each with its own deadline. They are a set of nonces, not a count, so a
// request that is executed again changes nothing, and a rollback removes exactly what its round acquired.

export interface Announcement {
  /** In ms. */
  readonly expiry: number;
  /** Even if the request is granted. */
  readonly always: boolean;
}

interface MemberRules {
  /** It is asked for in each round. */
  readonly group: () => string;
  /** Its kind is also the kind of the key. */
  readonly waiter: Waiter;
  /** The kind of the key of announced writers, which keep readers out. Default: there are none. */
  readonly writers?: string;
  /** Undefined: it does not wait any more. Default: it is no writer. */
  readonly announces?: () => Announcement | undefined;
}

/**
 * Its value is the nonce and the group. A release that no late request can follow keeps its tombstone briefly, for a
 * second execution of the acquire or the release.
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
      // A holder's announcement may stand at endpoints that refused it, and others may listen there.
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

export async function requestMember(
  call: Ask,
  keys: readonly string[],
  args: readonly (string | number)[],
): Promise<CellAnswer> {
  const [operation, value] = args;
  const [echo, remaining] = itemsOf(await runScript(call, memberScript, keys, args));
  if (echo === value && remaining === undefined) return { outcome: "granted" };
  if (echo === 0 && operation !== "acquire" && remaining === undefined) return { outcome: "lost" };
  if (echo === 0 && operation === "acquire" && isInteger(remaining) && remaining >= 0) {
    return { outcome: "held", retryAfter: remaining };
  }
  throw unexpectedReply();
}
