import { checkInteger, checkText } from "../check.ts";
import { checkAcquire } from "../lock/options.ts";
import { keyOf } from "../redis/keys.ts";
import type { Redlock } from "../redlock.ts";
import { randomToken } from "../runtime.ts";
import {
  type ArrivalOptions,
  type ArrivalQuery,
  type ArrivalSet,
  type ArrivalSnapshot,
  defaultTtl,
  pollArrivals,
} from "./internal/arrivals.ts";
import { checkName, syncSettings } from "./internal/hold.ts";

/** How many have to meet, and the defaults of every call. */
export interface CyclicBarrierOptions extends Omit<ArrivalOptions, "signal" | "deadline"> {
  /** An integer from 1 to 1 000, the same wherever the barrier is used. */
  readonly parties: number;
  /**
   * How long Redis remembers the barrier after the last arrival, in ms: an integer from 10 to 2 147 483 647. Default
   * 86 400 000 (24 hours).
   */
  readonly ttl?: number | undefined;
}

/** Where a party stands that has not passed yet. */
interface PartyState {
  /** Where it arrives, or brings the others; undefined: it does not know yet where the barrier is. */
  to: string | undefined;
  /** Where it has arrived, or may have. */
  readonly arrived: string[];
  /** The one of them that is complete. */
  passed: string | undefined;
}

// A generation is told by its level, and by the run that it belongs to; no run begins twice. A run begins where nothing
// is stored, and each generation that is complete leads to the next level.
function generation(level: number, run: string): string {
  return `g${String(level).padStart(16, "0")}${run}`;
}

function levelOf(text: string): number {
  return Number(text.slice(1, 17));
}

function runOf(text: string): string {
  return text.slice(17);
}

/**
 * The first level of a run: higher than where another ended that the quorum has forgotten, so that what some endpoint
 * may still remember of it is no later generation. A run has 10 000 levels for each ttl that it lasts.
 */
function firstLevel(now: number, ttl: number): number {
  return Math.floor(now / ttl) * 10_000;
}

/**
 * A point at which `parties` wait for each other, again and again, under a quorum of endpoints. Each party has an id
 * of its own, and there are no more ids than parties.
 *
 * Nobody passes before all parties have arrived. Whoever has arrived stays so, even if it gives up waiting or its
 * process dies: called again with the same id, it goes on waiting.
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
  readonly #redlock: Redlock;
  readonly #options: ArrivalOptions;
  /** By id: who goes on where it stood must not be taken for one that comes anew. */
  readonly #visits = new Map<string, PartyState>();

  /** @throws TypeError | RangeError when an argument is wrong */
  constructor(redlock: Redlock, name: string, { parties, ...options }: CyclicBarrierOptions) {
    this.name = checkName(name);
    this.parties = checkInteger("parties", parties, 1, 1_000);
    this.#redlock = redlock;
    this.#options = options;
    this.#roll(options);
  }

  /**
   * Arrives, and waits for the others for up to `wait`. After an error the party may have arrived nevertheless; call
   * again with the same id, and it goes on.
   *
   * @param id the party's, 1 … 255 characters
   * @returns the number of the generation that is complete, the same for all; the next one's is greater by 1
   * @throws ArrivalsMissingError when some were missing after `wait`
   * @throws QuorumError when too few endpoints answered in the last round
   * @throws LimitMismatchError when the barrier is in use with another number of parties
   * @throws the signal's reason when it aborts
   */
  async arriveAndWait(id: string, options: ArrivalOptions = {}): Promise<number> {
    checkText("id", id);
    const roll = this.#roll(options);
    const { runtime, ttl } = roll.settings;
    const visits = this.#visits;
    const visit: PartyState = visits.get(id) ?? { to: undefined, arrived: [], passed: undefined };
    visits.delete(id);
    visits.set(id, visit);
    // There are no more parties; what is beyond them was given up for good.
    for (const other of visits.keys()) if (visits.size > this.parties) visits.delete(other);

    const question = (): ArrivalQuery => {
      const { to, passed } = visit;
      return to === undefined ? {} : passed ? { to } : { to, id };
    };
    function go(to: string): ArrivalQuery {
      visit.to = to;
      // The next level comes only from a complete one. Of another run nothing is known: it arrives there anew.
      visit.passed ??= visit.arrived.find((other) => runOf(other) === runOf(to));
      if (!visit.passed) visit.arrived.push(to);
      return question();
    }
    function next(
      { result, latest, ids }: ArrivalSnapshot,
      asked: ArrivalQuery,
    ): ArrivalQuery | { value: number } {
      const { to, passed } = visit;
      // A minority may be a generation behind: that is where this party came from.
      if (!to && result !== "granted") return asked;
      if (latest > (to ?? "")) return go(latest);
      if (!to) return go(generation(firstLevel(runtime.now(), ttl), randomToken(runtime)));
      if (result !== "granted" || asked.to !== to) return question();
      if (passed) return { value: levelOf(passed) };
      return ids.size < roll.count ? question() : go(generation(levelOf(to) + 1, runOf(to)));
    }
    const complete = await pollArrivals(roll, checkAcquire(options), question(), next);
    visits.delete(id);
    return complete;
  }

  #roll(options: ArrivalOptions): ArrivalSet {
    const { name, parties } = this;
    const settings = syncSettings(this.#redlock, { ttl: defaultTtl }, this.#options, options);
    return { settings, name, key: keyOf(settings.prefix, "barrier", name), count: parties };
  }
}
