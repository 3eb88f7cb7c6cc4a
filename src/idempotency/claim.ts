import type { Endpoint } from "../endpoints/endpoint.ts";
import type { EndpointRequest, RequestCost } from "../endpoints/endpoint-request.ts";
import { highestFence, leastFence, voteForFence } from "../lock/fence.ts";
import {
  fencingOf,
  guardedCell,
  type LockRequest,
  lockKeys,
  tombstoneRetention,
} from "../lock/lock-request.ts";
import type { Settings } from "../lock/options.ts";
import { type Round, runRound } from "../quorum/round.ts";
import type { Answer } from "../quorum/tally.ts";
import {
  type Cell,
  type CellAnswer,
  claim,
  claimOrRead,
  type EndDetails,
  end,
  type Fencing,
  keep,
} from "../redis/cell.ts";

// What a run claims at one endpoint: its key alone, with native commands where there are some, or its key together with
// locks, all or none, by a script.

/** A run's claim at one endpoint. Each operation is one request. */
export interface ClaimOperations {
  /** The record's key, with this run's pending record. */
  readonly own: Cell;
  /** Claims everything, or nothing; an answer `held` with `blockedBy`: a lock is held by another. */
  begin(call: EndpointRequest, lease: number): Promise<CellAnswer>;
  /** Gives everything a new lease, or nothing. `fencing`: what {@link ClaimFence.renewal} says of it. */
  extend(call: EndpointRequest, lease: number, fencing?: Fencing): Promise<Answer>;
  /** Replaces the pending record, and frees the locks. The answer is about the record: another run's stays. */
  complete(call: EndpointRequest, text: string, retention: number): Promise<CellAnswer>;
  /** Deletes the pending record, and frees the locks. */
  free(call: EndpointRequest): Promise<Answer>;
  /** The fence, where there are locks. */
  readonly fence?: ClaimFence;
}

/** A run's claim: what it claims, and the round that did. */
export interface Claim {
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
  lock: Pick<LockRequest, "resources" | "nonce" | "note">,
): ClaimOperations {
  const { prefix, runtime, fenceRetention } = settings;
  const keys = [...own.keys, ...lockKeys(prefix, lock.resources)];
  const cell: Cell = { ...guardedCell({ ...lock, prefix, fenceRetention, keys }), record: own.value };
  const least = leastFence(runtime);
  const fence = new ClaimFence(cell, fenceRetention);
  const answered = new Set<Endpoint>();
  const endOne = (call: EndpointRequest, next?: EndDetails["next"]) =>
    answered.has(call.endpoint)
      ? end(call, { ...cell, tombstone: undefined }, { next })
      : end(call, cell, { next, tombstoneTtl: tombstoneRetention });
  return {
    own,
    fence,
    async begin(call, lease) {
      const answer = await claim(call, cell, lease, { fencing: fence.from(least, lease) });
      answered.add(call.endpoint);
      return answer;
    },
    extend: (call, lease, fencing) => keep(call, cell, lease, { fencing }),
    complete: (call, text, retention) => endOne(call, { text, ttl: retention }),
    free: (call) => endOne(call),
  };
}

/** The fence of a claim with locks. */
export class ClaimFence {
  readonly #cell: Cell;
  readonly #fenceRetention: number;
  #fence = 0;
  /** ms since the counters were written. */
  // Stryker disable next-line ArrowFunction: the draw replaces it before the first extension
  #sinceCounters: () => number = () => 0;

  constructor(cell: Cell, fenceRetention: number) {
    this.#cell = cell;
    this.#fenceRetention = fenceRetention;
  }

  /** The fence that {@link draw} has drawn. */
  get value(): number {
    return this.#fence;
  }

  /** The lowest fence, and how long its counters must be kept. */
  from(least: number, lease: number): Fencing {
    return fencingOf(least, this.#fenceRetention, lease);
  }

  /** What an extension must do for the counters, which must outlive the locks, however long these are held. */
  renewal(lease: number): Fencing | undefined {
    return this.#sinceCounters() + lease > this.#fenceRetention ? this.from(this.#fence, lease) : undefined;
  }

  /** Notes that a quorum has done it. */
  renewed({ elapsed }: Round<Answer>): void {
    this.#sinceCounters = elapsed;
  }

  /**
   * Takes the highest fence of a granted round. Where no quorum has it, a second round raises the counters.
   *
   * @returns the second round, where there is one; without its grant there is no fence
   */
  draw(
    settings: Settings,
    round: Round<CellAnswer>,
    lease: number,
    cost: RequestCost,
  ): Round<Answer> | undefined {
    const { fence, isAtQuorum } = highestFence(round);
    this.#fence = fence;
    this.#sinceCounters = round.elapsed;
    if (isAtQuorum) return undefined;
    const raise = async (call: EndpointRequest) =>
      voteForFence(await keep(call, this.#cell, 0, { fencing: this.from(fence, lease) }), fence);
    return runRound(settings, raise, { cost });
  }
}
