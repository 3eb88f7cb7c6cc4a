import type { Cell, Fencing } from "../redis/cell.ts";
import { keyOf } from "../redis/keys.ts";
import { type Holder, holderText } from "./note.ts";

// What one round claims, and its keys and values in Redis.

/** The resources, and their holder. */
export interface LockRequest extends Holder {
  readonly resources: readonly string[];
  readonly prefix: string;
  /** Fresh in every round, so that a late rollback of one round can never delete what the next one acquired. */
  readonly nonce: string;
  /** How long an idle fence counter is kept, in ms; 0: no fencing. */
  readonly fenceRetention: number;
  /** The keys to acquire: {@link lockKeys}, or those of a synchronizer. */
  readonly keys: readonly string[];
}

/**
 * How long a tombstone is kept, in ms. No proxy and no platform holds a request up for longer than this after its sender
 * has given it up.
 */
export const tombstoneRetention = 60_000;

/** The keys of the plain locks of these resources. */
export function lockKeys(prefix: string, resources: readonly string[]): readonly string[] {
  return resources.map((resource) => keyOf(prefix, "lock", resource));
}

/** The cell without a tombstone: where it is held, and no late request can follow. */
export function heldCell(request: LockRequest): Cell {
  return { keys: request.keys, value: holderText(request) };
}

/**
 * The cell as one round claims it. With a tombstone a request that is executed after its rollback claims nothing. Only a
 * script checks it, so a cell that a native command can claim has none.
 */
export function acquiredCell(request: LockRequest): Cell {
  const { resources, fenceRetention } = request;
  return resources.length === 1 && !fenceRetention ? heldCell(request) : guardedCell(request);
}

/**
 * The cell with its tombstone and its fence counters, also where a native command claimed it. Each nonce has a tombstone of
 * its own: the rollbacks of two contenders would overwrite a common one.
 */
export function guardedCell(request: LockRequest): Cell {
  const { prefix, resources, nonce } = request;
  const counters = resources.map((resource) => keyOf(prefix, "fence", resource));
  return {
    ...heldCell(request),
    tombstone: `${keyOf(prefix, "void", resources[0]!)}:${nonce}`,
    counters,
  };
}

/**
 * What a script does with the counters: their lowest value, and how long they outlive the moment that it names, in ms: the
 * retention, counted from the end of a lock of this ttl, and at least twice the retention, so that most extensions need not
 * renew it.
 *
 * The script asks the endpoint for its time to add this to the fence. An expiry as a point in time (`PXAT`) would save
 * that command; but where the endpoint's clock is ahead by more than the retention, the counter would be gone as soon as
 * it is written, and two locks of the same ms could draw the same fence.
 */
export function fencingOf(least: number, fenceRetention: number, ttl: number): Fencing {
  return { least, retention: fenceRetention + Math.max(fenceRetention, ttl) };
}
