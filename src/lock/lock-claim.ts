import type { Cell } from "../redis/cell.ts";
import { keyOf } from "../redis/keys.ts";
import { type Holder, holderText } from "./note.ts";

// What one round claims, and its keys and values in Redis.

/** The resources, and their holder. */
export interface LockClaim extends Holder {
  readonly resources: readonly string[];
  readonly prefix: string;
  /** Fresh in every round, so that a late rollback of one round can never delete what the next one acquired. */
  readonly nonce: string;
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
export function heldCell(claim: LockClaim): Cell {
  return { keys: claim.keys, value: holderText(claim) };
}

/**
 * The cell as one round claims it. With a tombstone a request that is executed after its rollback claims nothing. Only a
 * script checks it, so a cell that a native command can claim has none.
 *
 * @param hasFence whether the round draws a fence
 */
export function acquiredCell(claim: LockClaim, hasFence: boolean): Cell {
  return claim.resources.length === 1 && !hasFence ? heldCell(claim) : guardedCell(claim);
}

/**
 * The cell with its tombstone and its fence counters, also where a native command claimed it. Each nonce has a tombstone of
 * its own: the rollbacks of two contenders would overwrite a common one.
 */
export function guardedCell(claim: LockClaim): Cell {
  const { prefix, resources, nonce } = claim;
  const counters = resources.map((resource) => keyOf(prefix, "fence", resource));
  return {
    ...heldCell(claim),
    tombstone: `${keyOf(prefix, "void", resources[0]!)}:${nonce}`,
    counters,
  };
}
