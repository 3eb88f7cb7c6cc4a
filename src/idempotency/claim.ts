import { Fence } from "../bridge/fence.ts";
import type { Ask } from "../endpoints/ask.ts";
import type { Endpoint } from "../endpoints/endpoint.ts";
import { leastFence } from "../lock/fence.ts";
import { type Holder, holderText } from "../lock/note.ts";
import type { Settings } from "../lock/options.ts";
import { lockKeys, tombstoneOf, tombstoneRetention } from "../lock/protocol.ts";
import type { Round } from "../quorum/round.ts";
import type { Answer } from "../quorum/tally.ts";
import {
  type Cell,
  type CellAnswer,
  type CounterTerms,
  claim,
  claimOrRead,
  type EndDetails,
  end,
  keep,
} from "../redis/cell.ts";
import { keyOf } from "../redis/keys.ts";

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
  /** Gives everything a new lease, or nothing. `terms`: what {@link Fence.renewal} says of it. */
  extend(call: Ask, lease: number, terms?: CounterTerms): Promise<Answer>;
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
    complete: (call, text, retention) => keep(call, own, retention, { next: text }),
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
  const { prefix, runtime, fenceRetention } = settings;
  const keys = [...own.keys, ...lockKeys(prefix, lock.resources)];
  const cell: Cell = {
    keys,
    value: holderText(lock),
    record: own.value,
    tombstone: tombstoneOf(prefix, lock.resources, lock.nonce),
    counters: lock.resources.map((resource) => keyOf(prefix, "fence", resource)),
  };
  const fence = new Fence(leastFence(runtime), fenceRetention);
  const answered = new Set<Endpoint>();
  const endOne = (call: Ask, next?: EndDetails["next"]) =>
    answered.has(call.endpoint)
      ? end(call, { ...cell, tombstone: undefined }, { next })
      : end(call, cell, { next, tombstoneTtl: tombstoneRetention });
  return {
    own,
    cell,
    fence,
    async begin(call, lease) {
      const answer = await claim(call, cell, lease, fence.terms(lease));
      answered.add(call.endpoint);
      return answer;
    },
    extend: (call, lease, terms) => keep(call, cell, lease, { terms }),
    complete: (call, text, retention) => endOne(call, { text, ttl: retention }),
    free: (call) => endOne(call),
  };
}
