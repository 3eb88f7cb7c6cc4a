import { checkText } from "../check/check.ts";
import type { LockClient } from "../lock/client.ts";
import { randomToken } from "../runtime/runtime.ts";
import {
  type ArrivalDefaults,
  type ArrivalOptions,
  type ArrivalQuery,
  type ArrivalSnapshot,
  Arrivals,
  generation,
  levelOf,
  runOf,
} from "./internal/arrivals.ts";

/** Options of a {@link CyclicBarrier}. */
export interface CyclicBarrierOptions extends ArrivalDefaults {
  /** How many wait for each other: an integer from 1 to 1 000, equal in all clients. */
  readonly parties: number;
  /**
   * How long Redis remembers the barrier after the last arrival, in ms: an integer from 10 to 2 147 483 647. Default 86
   * 400 000 (24 hours).
   */
  readonly ttl?: number | undefined;
}

/** Of a party that has not passed yet. */
interface PartyState {
  /** Undefined: it does not know the latest yet. */
  to: string | undefined;
  /** Where it has arrived, or may have. */
  readonly arrived: string[];
  /** The complete one of them. */
  passed: string | undefined;
}

// A generation has a level and a run. A run begins with a random name if nothing is stored, so no run begins twice.
// Only a party that found all arrivals of a level, in the union of a quorum's sets, writes the next level. An endpoint
// only moves to a later generation. So:
//
// - No party passes before all have arrived.
// - No party arrives in level k twice: once it has passed k, it finds a quorum above k. Nor does it arrive in k + 1 first:
//   k + 1 exists only if it has arrived in k, and then it passes k when it finds k + 1.
// - Parties that begin at once may each begin a run. The greater name wins, and a party that finds it arrives there, too. If
//   the other run is complete first, its next level wins, because levels are compared before names: a party that waits in
//   the first run has arrived in both. If names were compared first, a dead process's run could set the others back.

/**
 * Higher than the last level of a run that a quorum has forgotten, because a minority may remember it. A run has 10 000
 * levels for each ttl that it lasts.
 */
function firstLevel(now: number, ttl: number): number {
  return Math.floor(now / ttl) * 10_000;
}

/**
 * A point at which `parties` wait for each other, again and again. Each party has its own id, and there are no more ids
 * than parties. No party passes before all have arrived. An arrival stays even if the party gives up waiting or its
 * process dies.
 *
 * @example
 * const barrier = new CyclicBarrier(redlock, "shuffle", { parties: 3 });
 * for (const phase of phases) {
 *   await phase.run(worker);
 *   await barrier.arriveAndWait(worker, { wait: 60_000 }); // until all three have done it
 * }
 */
export class CyclicBarrier {
  readonly name: string;
  readonly parties: number;
  readonly #arrivals: Arrivals;
  /** A party that goes on must not count as one that arrives anew. */
  readonly #states = new Map<string, PartyState>();

  constructor(redlock: LockClient, name: string, given: CyclicBarrierOptions) {
    this.#arrivals = new Arrivals(redlock, { name, kind: "barrier", counted: "parties" }, given);
    this.name = name;
    this.parties = this.#arrivals.count;
  }

  /**
   * Arrives, and waits for the others for up to `wait`. After an error the party may still have arrived: call again
   * with this id to go on.
   *
   * @param id the party's, 1 … 255 characters
   * @returns the number of the complete generation, greater by 1 each time
   * @throws ArrivalsMissingError when some were missing after `wait`
   * @throws QuorumError when too few endpoints answered in the last round
   * @throws LimitMismatchError when the barrier is in use with another number of parties
   */
  async arriveAndWait(id: string, options: ArrivalOptions = {}): Promise<number> {
    checkText("id", id);
    const { runtime, ttl } = this.#arrivals.settingsOf(options);
    const state = this.#stateOf(id);
    const next = (snapshot: ArrivalSnapshot, query: ArrivalQuery): ArrivalQuery | { value: number } => {
      const { result, latest, ids } = snapshot;
      const { to, passed } = state;
      // A minority may still have the generation that this party has passed.
      if (!to && result !== "granted") return query;
      if (latest > (to ?? "")) return moveTo(state, id, latest);
      if (!to) {
        return moveTo(state, id, generation(firstLevel(runtime.now(), ttl), randomToken(runtime)));
      }
      if (result !== "granted" || query.to !== to) return queryOf(state, id);
      if (passed) return { value: levelOf(passed) };
      if (ids.size < this.parties) return queryOf(state, id);
      return moveTo(state, id, generation(levelOf(to) + 1, runOf(to)));
    };
    const complete = await this.#arrivals.poll(options, queryOf(state, id), next);
    this.#states.delete(id);
    return complete;
  }

  #stateOf(id: string): PartyState {
    const states = this.#states;
    const state = states.get(id) ?? { to: undefined, arrived: [], passed: undefined };
    // The oldest is first.
    states.delete(id);
    states.set(id, state);
    // The surplus was given up.
    for (const other of states.keys()) if (states.size > this.parties) states.delete(other);
    return state;
  }
}

function queryOf({ to, passed }: PartyState, id: string): ArrivalQuery {
  if (to === undefined) return {};
  return passed ? { to } : { to, id };
}

function moveTo(state: PartyState, id: string, to: string): ArrivalQuery {
  state.to = to;
  // The next level of a run exists only if the one before is complete. In another run, it arrives.
  state.passed ??= state.arrived.find((other) => runOf(other) === runOf(to));
  if (!state.passed) state.arrived.push(to);
  return queryOf(state, id);
}
