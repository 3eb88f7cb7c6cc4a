import { checkInteger } from "../check/check.ts";
import { LockLostError } from "../errors/errors.ts";
import { acquire } from "../lock/acquire.ts";
import { type LockClient, settingsOf } from "../lock/client.ts";
import { fenced, fenceOf } from "../lock/fence.ts";
import type { Lock } from "../lock/lock.ts";
import { parseHolder } from "../lock/note.ts";
import { checkLockOptions, checkResources, type LockOptions, type Settings } from "../lock/options.ts";
import { type Protocol, plain, tombstoneOf } from "../lock/protocol.ts";
import { claim, end, keep, tombstoneRetention } from "../redis/cell.ts";

/** A lock as plain JSON, for another process. It contains the lock's token: treat it as a secret. */
export interface LockJSON {
  readonly resources: readonly string[];
  readonly prefix: string;
  /** The token, and the note. */
  readonly value: string;
  readonly ttl: number;
  readonly fence?: number | undefined;
  /** Sorted names. The receiver's client must have equal ones. */
  readonly endpoints: readonly string[];
}

/** Options of {@link resume}. The message has the others. */
export type ResumeOptions = Omit<LockOptions, "ttl" | "fencing" | "prefix" | "wait" | "backoff">;

const namesOf = ({ endpoints }: Settings) => endpoints.map(({ name }) => name).sort();

/**
 * Hands a lock over to another process, which calls {@link resume}. Your handle ends, but the lock stays held until its
 * ttl ends, even beyond your `deadline`.
 *
 * @returns plain JSON with the lock's token: treat it as a secret
 * @throws LockLostError when the lock is lost, released, or handed over already
 * @throws QuorumError when the lock had a `deadline`, and too few endpoints extended it to its whole ttl
 *
 * @example
 * await queue.send({ job, lock: await handoff(lock) });
 */
export async function handoff(lock: Lock): Promise<LockJSON> {
  if (typeof lock?.outliveDeadline !== "function") throw new TypeError("handoff needs a lock: handoff(lock)");
  const { resources, ttl, fence } = lock;
  // The message may outlive this process.
  await lock.outliveDeadline();
  if (lock.remaining() <= 0) throw new LockLostError(resources, "it has ended, or was handed over");
  const { cell, settings } = await lock.abandon();
  return { resources, prefix: settings.prefix, value: cell.value, ttl, fence, endpoints: namesOf(settings) };
}

/**
 * Takes over a lock from {@link handoff}, for a whole ttl. If a queue delivers the message twice, at most one process
 * gets the lock. If several resume it at once, perhaps none gets it.
 *
 * @throws LockLostError when another process was first, or the lock was released or has expired
 * @throws QuorumError when too few endpoints answered. You can try again, because `resume` puts the keys back
 * @throws TypeError | RangeError when `json` is not what `handoff` returned, or its lock has other endpoints
 *
 * @example
 * await using lock = await resume(redlock, message.lock, { autoExtend: true });
 */
export async function resume(redlock: LockClient, json: LockJSON, options?: ResumeOptions): Promise<Lock> {
  const given = { ...options, prefix: json?.prefix, ttl: json?.ttl, wait: 0 };
  const settings = settingsOf(redlock, checkLockOptions(given));
  // Not shown, because it contains the lock's token.
  if (!/^t[0-9a-f]{32}( |$)/.test(json?.value))
    throw new TypeError("resume needs what handoff(lock) resolved to, as JSON.parse(text) returns it");
  if (json.fence !== undefined) checkInteger("fence", json.fence, 1, Number.MAX_SAFE_INTEGER);
  // Other endpoints would know nothing of the lock.
  if (String(json.endpoints) !== String(namesOf(settings)))
    throw new RangeError(`the lock's endpoints are ${json.endpoints}; this client has ${namesOf(settings)}`);
  const { note } = parseHolder(json.value);
  return acquire(settings, checkResources(json.resources), { note }, takeover(settings, json));
}

/**
 * At each endpoint, claims the message, and then swaps its nonce for a new one. The claim is the tombstone of the
 * message's nonce: it refuses a second delivery, even after the release and a repeated acquire of the giver. A failed
 * call swaps back, and then deletes its claim.
 */
function takeover(settings: Settings, { resources, value, fence }: LockJSON): Protocol {
  const { nonce, note } = parseHolder(value);
  const drawn = fence ? fenceOf(settings, resources, fence) : undefined;
  const lock = drawn ? fenced(settings, resources, note, drawn) : plain(settings, resources, note);
  const keys = [tombstoneOf(settings.prefix, resources, nonce)];
  /** By this call or by another one. */
  let isTaken = false;
  return {
    ...lock,
    cell: (own) => ({ ...lock.cell(own), tombstone: tombstoneOf(settings.prefix, resources, own) }),
    async claim(call, cell, ttl) {
      // Restores the lock at an endpoint that has lost it.
      if (isTaken) return lock.claim(call, cell, ttl);
      const claimed = await claim(call, { ...cell, keys }, ttl + tombstoneRetention);
      if (claimed.outcome !== "granted") return claimed;
      const former = { ...cell, value };
      return keep(call, drawn?.counted(former, ttl) ?? former, ttl, cell.value);
    },
    confirm() {
      isTaken = true;
      return undefined;
    },
    async next({ result }) {
      isTaken = (await result) === "refused";
      if (isTaken) throw new LockLostError(resources, "it was resumed before, or released, or has expired");
      return "end" as const;
    },
    async release(call, cell, claimed, isAnnounced) {
      if (isTaken || claimed.hasDoneNothing) return lock.release(call, cell, claimed, isAnnounced);
      await end(call, cell, { values: cell.keys.map(() => value), ttl: settings.ttl });
      return end(call, { keys, value: cell.value });
    },
  };
}
