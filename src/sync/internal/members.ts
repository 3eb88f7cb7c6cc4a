import type { Ask } from "../../endpoints/ask.ts";
import type { Settings } from "../../lock/options.ts";
import type { Waiter } from "../../lock/wake-up.ts";
import type { Cell, CellAnswer } from "../../redis/cell.ts";
import { keyOf } from "../../redis/keys.ts";
import { runScript, unexpectedReply } from "../../redis/script.ts";
import { tokenLength } from "../../runtime.ts";
import { channelOf } from "../../wake-up/channel.ts";
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

/** Who a member is, and who waits. */
interface MemberRules {
  /** Those that hold it together. */
  readonly group: string;
  /** Those that wait. Their kind is also that of the key. */
  readonly waiter: Waiter;
  /**
   * The announcements that a request heeds, makes or removes. Its tombstone is kept for `retention` ms. Default: there are
   * none; only a read-write lock has some.
   */
  readonly announced?: (
    operation: "acquire" | "release",
    retention: number,
    notify: boolean,
  ) => Announcements | undefined;
}

/**
 * A strategy for one member of a group.
 *
 * A member's value is the cell's nonce and the group. It has a tombstone of its own. A release that no late request can
 * follow keeps it briefly: it lets a second execution reply what the first one did, and refuses a second execution of the
 * acquire. It costs one command of five; permits and fair locks, whose release is a single command, have none.
 */
export function memberStrategy(
  { prefix, timeout }: Settings,
  name: string,
  { group, waiter, announced = () => undefined }: MemberRules,
): HoldStrategy & Required<Pick<HoldStrategy, "release">> {
  const key = keyOf(prefix, waiter.kind, name);
  const tombstones = keyOf(prefix, "void", name);
  const memberOf = ({ keys, value }: Cell): Cell => ({
    keys,
    value: value + group,
    tombstone: `${tombstones}:${value}`,
  });
  return {
    waiter,
    keys: () => [key],
    acquire: (call, cell, ttl) =>
      requestMember(call, "acquire", memberOf(cell), {
        ttl,
        announcements: announced("acquire", ttl, false),
      }),
    extend: (call, { keys, value }, ttl) =>
      requestMember(call, "extend", { keys, value: value + group }, { ttl }),
    release: (call, cell, retention, notify) =>
      requestMember(call, "release", memberOf(cell), {
        // It is remembered for longer than its reply is waited for.
        ttl: retention || Math.ceil(2 * timeout),
        // Who waits for it depends on whether writers do.
        announcements: announced("release", retention, notify),
        channel: notify ? channelOf(prefix, waiter.kind, name) : undefined,
      }),
  };
}

/** What a request says beside the member. */
export interface MemberDetails {
  /** ms until its deadline, or for a release, for which its tombstones are kept. */
  readonly ttl: number;
  readonly announcements?: Announcements | undefined;
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
  { keys, value, tombstone }: Cell,
  { ttl, announcements, channel }: MemberDetails,
): Promise<CellAnswer> {
  const { key, own }: Partial<Announcements> = announcements ?? {};
  const tombstones = [...new Set([tombstone, own?.tombstone].flatMap((name) => name ?? []))];
  const names = [...keys, ...tombstones, ...(key ? [key] : [])];
  const announced = [own?.id ?? "", own?.always ? 1 : 0, own?.expiry ?? 0];
  // Where the group begins, behind the nonce.
  const from = tokenLength + 1;
  const args = [operation, value, from, ttl, tombstones.length, ...announced, ...(channel ? [channel] : [])];
  // The time until the obstacle expires.
  const [echo, remaining] = itemsOf(await runScript(call, memberScript, names, args));
  if (echo === value && remaining === undefined) return { outcome: "granted" };
  if (echo === 0 && operation !== "acquire" && remaining === undefined) return { outcome: "lost" };
  if (echo === 0 && operation === "acquire" && isInteger(remaining) && remaining >= 0) {
    return { outcome: "held", retryAfter: remaining };
  }
  throw unexpectedReply();
}
