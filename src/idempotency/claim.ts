import type { EndpointRequest, RequestCost } from "../endpoints/endpoint-request.ts";
import { highestFence, leastFence, voteForFence } from "../lock/fence.ts";
import { counterTtl } from "../lock/lock-request.ts";
import type { Settings } from "../lock/options.ts";
import { type Round, runRound } from "../quorum/round.ts";
import type { Answer } from "../quorum/tally.ts";
import { acquireOrRead, type Cell, type CellAnswer, extend, type Fencing, release } from "../redis/cell.ts";
import { beginClaim, type ClaimKeys, endClaim, extendClaim } from "../redis/claim.ts";
import { keyOf } from "../redis/keys.ts";

// What a run claims at one endpoint: its key alone, with native commands where there are some, or its key together with
// locks, all or none, by a script.

/** A run's claim at one endpoint. Each operation is one request. */
export interface ClaimOperations {
  /** The record's key, with this run's pending record. */
  readonly own: Cell;
  /** Claims everything, or nothing; an answer `held` without a value: a lock is held by another. */
  begin(call: EndpointRequest, lease: number): Promise<CellAnswer>;
  /** Gives everything a new lease, or nothing. */
  extend(call: EndpointRequest, lease: number): Promise<Answer>;
  /** Replaces the pending record, and frees the locks. The answer is about the record: another run's stays. */
  complete(call: EndpointRequest, text: string, retention: number): Promise<CellAnswer>;
  /** Deletes the pending record, and frees the locks. */
  free(call: EndpointRequest): Promise<Answer>;
  /** The fence, where there are locks. */
  readonly fence?: ClaimFence;
}

/** The claim of a key alone. */
export function keyClaim(own: Cell): ClaimOperations {
  return {
    own,
    begin: (call, lease) => acquireOrRead(call, own, lease),
    extend: (call, lease) => extend(call, own, lease),
    complete: (call, text, retention) => extend(call, own, retention, text),
    free: (call) => release(call, own),
  };
}

/**
 * The claim of a key together with the locks of these resources. It has no tombstone, which every delivery would pay for:
 * what is executed after its sender has given up holds them for one lease, as the claim of a key alone does.
 *
 * @param token the locks' value
 */
export function lockedClaim(
  settings: Settings,
  own: Cell,
  token: string,
  resources: readonly string[],
): ClaimOperations {
  const { prefix, runtime, fenceRetention } = settings;
  const namesOf = (kind: string) => resources.map((resource) => keyOf(prefix, kind, resource));
  const record = own.keys[0]!;
  const keys: ClaimKeys = {
    record,
    pending: own.value,
    locks: namesOf("lock"),
    token,
    counters: namesOf("fence"),
  };
  const least = leastFence(runtime);
  const fence = new ClaimFence(keys, fenceRetention);
  return {
    own,
    fence,
    begin: (call, lease) => beginClaim(call, keys, lease, fence.from(least, lease)),
    extend: (call, lease) => extendClaim(call, keys, lease, fence.renewal(lease)),
    complete: (call, text, retention) => endClaim(call, keys, text, retention),
    free: (call) => endClaim(call, keys),
  };
}

/** The fence of a claim with locks. */
export class ClaimFence {
  readonly #keys: ClaimKeys;
  readonly #fenceRetention: number;
  #fence = 0;
  /** ms since the counters were written. */
  // Stryker disable next-line ArrowFunction: the draw replaces it before the first extension
  #sinceCounters: () => number = () => 0;

  constructor(keys: ClaimKeys, fenceRetention: number) {
    this.#keys = keys;
    this.#fenceRetention = fenceRetention;
  }

  /** The fence that {@link draw} has drawn. */
  get value(): number {
    return this.#fence;
  }

  /** The lowest fence, and how long its counters must be kept. */
  from(least: number, lease: number): Fencing {
    return { least, retention: counterTtl(this.#fenceRetention, lease) };
  }

  /** What an extension must do for the counters, which must outlive the locks, however long these are held. */
  renewal(lease: number): Fencing | undefined {
    return this.#sinceCounters() + lease > this.#fenceRetention ? this.from(this.#fence, lease) : undefined;
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
      voteForFence(await extendClaim(call, this.#keys, 0, this.from(fence, lease)), fence);
    return runRound(settings, raise, { cost });
  }
}
