import type { Ask } from "../endpoints/ask.ts";
import type { Endpoint } from "../endpoints/endpoint.ts";
import { type Fence, fenceOf } from "../lock/fence.ts";
import { type Holder, holderText } from "../lock/note.ts";
import type { Settings } from "../lock/options.ts";
import { lockKeys, tombstoneOf, withoutTombstone } from "../lock/protocol.ts";
import type { Round } from "../quorum/round.ts";
import type { Answer } from "../quorum/tally.ts";
import { type Cell, type CellAnswer, claim, claimOrRead, end, keep } from "../redis/cell.ts";

// What a run claims at one endpoint: its key alone, with native commands where there are some, or its key together with
// locks, all or none, by a script.

/** A run's claim at one endpoint. Each operation is one request. */
export interface ClaimOperations {
  /** The record's key, with this run's pending record. */
  readonly own: Cell;
  /** All that it claims: the same, and the locks. */
  readonly cell: Cell;
  /** Claims everything, or nothing; an answer `held` with `blockedBy`: a lock is held by another. */
  begin(call: Ask, lease: number): Promise<CellAnswer>;
  /** Gives everything a new lease, or nothing. */
  extend(call: Ask, lease: number): Promise<Answer>;
  /** Replaces the pending record, and frees the locks. The answer is about the record: another run's stays. */
  complete(call: Ask, text: string, retention: number): Promise<CellAnswer>;
  /** Deletes the pending record, and frees the locks. */
  free(call: Ask): Promise<Answer>;
  /** The fence, where there are locks. */
  readonly fence?: Fence;
}

/** What a run claims, and the round that did. */
export interface RunClaim {
  readonly token: string;
  readonly operations: ClaimOperations;
  /** Wall-clock time in ms since 1970. */
  readonly startedAt: number;
  /** The ttl of the pending record, in ms. */
  readonly lease: number;
  /** ms from the begin to the deadline of the call. */
  readonly limit: number;
  readonly round: Round<CellAnswer>;
}

/** The claim of a key alone. */
export function keyClaim(own: Cell): ClaimOperations {
  return {
    own,
    cell: own,
    begin: (call, lease) => claimOrRead(call, own, lease),
    extend: (call, lease) => keep(call, own, lease),
    complete: (call, text, retention) => keep(call, own, retention, text),
    free: (call) => end(call, own),
  };
}

/**
 * The claim of a key together with the locks of these resources. Where the begin was not answered, its end leaves a
 * tombstone: a begin that is executed later would hold the locks for nobody.
 *
 * @param lock what is locked, and by whom
 */
export function lockedClaim(
  settings: Settings,
  own: Cell,
  lock: Holder & { readonly resources: readonly string[] },
): ClaimOperations {
  const { prefix } = settings;
  const locks = lockKeys(prefix, lock.resources);
  const value = holderText(lock);
  const cell: Cell = {
    keys: [...own.keys, ...locks],
    value,
    values: [own.value, ...locks.map(() => value)],
    tombstone: tombstoneOf(prefix, lock.resources, lock.nonce),
  };
  const fence = fenceOf(settings, lock.resources);
  fence.begin();
  const answered = new Set<Endpoint>();
  const endOne = async (call: Ask, next?: Parameters<typeof end>[2]): Promise<CellAnswer> => {
    const target = answered.has(call.endpoint) ? withoutTombstone(cell) : cell;
    const answer = await end(call, target, next);
    // A lock that had expired is free as well.
    return answer.blockedBy === undefined ? answer : { outcome: "granted" };
  };
  return {
    own,
    cell,
    fence,
    async begin(call, lease) {
      const answer = await claim(call, fence.counted(cell, lease), lease);
      answered.add(call.endpoint);
      return answer;
    },
    extend: (call, lease) => fence.extend(call, cell, lease),
    complete: (call, text, retention) => endOne(call, { values: [text], ttl: retention }),
    free: (call) => endOne(call),
  };
}
