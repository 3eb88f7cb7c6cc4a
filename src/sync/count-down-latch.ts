import { checkText } from "../check/check.ts";
import type { LockClient } from "../lock/client.ts";
import {
  type ArrivalDefaults,
  type ArrivalOptions,
  type ArrivalQuery,
  Arrivals,
} from "./internal/arrivals.ts";

/** Options of a {@link CountDownLatch}. */
export interface CountDownLatchOptions extends ArrivalDefaults {
  /** How many ids open it: an integer from 1 to 1 000, equal in all clients. */
  readonly count: number;
  /**
   * How long Redis remembers the latch after the last arrival, in ms: an integer from 10 to 2 147 483 647. Default 86
   * 400 000 (24 hours).
   */
  readonly ttl?: number | undefined;
}

/** The state of a {@link CountDownLatch}. */
export interface LatchState {
  readonly open: boolean;
  /** May vary by one if only a minority of the endpoints knows of an arrival. */
  readonly arrived: number;
  readonly remaining: number;
}

// Generation `g0` has the arrivals, and `g1` means open. After a reset by an operator, a `g2` and something longer
// replace the `g`.
const firstEpoch = "g";
const closed = "0";
const open = "1";

/**
 * Opens when `count` different ids have arrived, and stays open. A repeated arrival counts once, so after an error
 * simply arrive again. It never opens too early. At least one arrival gets `open: true`, and several that arrive at
 * once may: guard a routine that may run only once (`Idempotency.run`).
 *
 * @example
 * const parts = new CountDownLatch(redlock, `import:${id}`, { count: 5 });
 * const { open } = await parts.arrive(part);
 * if (open) await idempotency.run(`import:${id}`, () => finish(id));
 */
export class CountDownLatch {
  readonly name: string;
  readonly count: number;
  readonly #arrivals: Arrivals;

  constructor(redlock: LockClient, name: string, given: CountDownLatchOptions) {
    this.#arrivals = new Arrivals(redlock, { name, kind: "latch", counted: "count" }, given);
    this.name = name;
    this.count = this.#arrivals.count;
  }

  /**
   * Counts `id` as arrived, once.
   *
   * @param id 1 … 255 characters
   * @throws QuorumError when too few endpoints answered within `wait`. The arrival may still count, and you can repeat
   * it
   * @throws LimitMismatchError when the latch is in use with another count
   * @throws the signal's reason. The arrival may still count
   */
  async arrive(id: string, options: ArrivalOptions = {}): Promise<LatchState> {
    checkText("id", id);
    return this.#poll({ to: firstEpoch + closed, id }, options, false);
  }

  /**
   * Waits for up to `wait` until the latch is open.
   *
   * @throws ArrivalsMissingError when it was still closed after `wait`
   * @throws QuorumError when too few endpoints answered in the last round
   * @throws LimitMismatchError when the latch is in use with another count
   */
  async wait(options: ArrivalOptions = {}): Promise<void> {
    await this.#poll({}, options, true);
  }

  /**
   * Returns the state without changing it.
   *
   * @throws QuorumError when too few endpoints answered within `wait`
   * @throws LimitMismatchError when the latch is in use with another count
   */
  inspect(options: ArrivalOptions = {}): Promise<LatchState> {
    return this.#poll({}, options, false);
  }

  async #poll(first: ArrivalQuery, options: ArrivalOptions, waits: boolean): Promise<LatchState> {
    const { count } = this;
    const arrived = new Set<string>();
    let epoch = firstEpoch;
    return this.#arrivals.poll<LatchState>(options, first, (snapshot, query) => {
      const { latest, isDecided, ids, isUnanimous, result } = snapshot;
      const latestEpoch = latest.slice(0, -1);
      // These endpoints have not heard of the reset.
      if (latestEpoch && latestEpoch < epoch) return query;
      if (latestEpoch > epoch) {
        epoch = latestEpoch;
        arrived.clear();
        // The query was for the epoch before.
        if (first.id !== undefined) return { to: epoch + closed, id: first.id };
        if (query.to !== undefined) return {};
      }
      for (const id of ids) arrived.add(id);
      const isOpen = latest === epoch + open;
      if (isOpen && isDecided) return { value: { open: true, arrived: count, remaining: 0 } };
      // A quorum must know, because a minority may forget.
      if (isOpen || arrived.size >= count) return { to: epoch + open };
      if (result !== "granted") return query;
      // Three that arrive at once, each at two of three endpoints, may each have met only one other. A query after the
      // own arrival finds all that were complete before. Unanimous endpoints need none: a missing id arrives later
      // everywhere, and finds all.
      if (query.id !== undefined && !isUnanimous) return {};
      if (waits) return query;
      return { value: { open: false, arrived: arrived.size, remaining: count - arrived.size } };
    });
  }
}
