import { checkInteger, checkText } from "../check.ts";
import { checkAcquire } from "../lock/options.ts";
import { keyOf } from "../redis/keys.ts";
import type { Redlock } from "../redlock.ts";
import {
  type ArrivalOptions,
  type ArrivalQuery,
  type ArrivalSet,
  defaultTtl,
  pollArrivals,
} from "./internal/arrivals.ts";
import { checkName, syncSettings } from "./internal/hold.ts";

/** How many have to arrive, and the defaults of every call. */
export interface CountDownLatchOptions extends Omit<ArrivalOptions, "signal" | "deadline"> {
  /** An integer from 1 to 1 000, the same wherever the latch is used. */
  readonly count: number;
  /**
   * How long Redis remembers an arrival, and an open latch, in ms: an integer from 10 to 2 147 483 647. Default
   * 86 400 000 (24 hours). Every arrival renews it for all, on the endpoints that it reaches.
   */
  readonly ttl?: number | undefined;
}

/** What a quorum knows of a latch. */
export interface LatchState {
  /** Once told of it, everybody who asks later is told, too. */
  readonly open: boolean;
  /** How many are known to have arrived; one more or less than before where only a minority knows of somebody. */
  readonly arrived: number;
  /** How many are missing. */
  readonly remaining: number;
}

// A latch has two generations: arrivals are of the first, and the second has begun when it is open. They are called
// `g0` and `g1`, and something longer behind a `g2` when an operator has reset the latch: each reset begins an epoch.
const firstEpoch = "g";
const closed = "0";
const open = "1";

/**
 * Opens when `count` different ids have arrived, under a quorum of endpoints, and stays open. A repeated arrival counts
 * once, so whoever does not know whether it has arrived arrives again.
 *
 * It never opens too early. Of those that arrive one at least is told at once that it is open: the last one, or several
 * where they come at the same moment. The routine that may run only once needs a guard of its own (`Idempotency.run`).
 *
 * @example
 * const parts = new CountDownLatch(redlock, `import:${id}`, { count: 5 });
 * const { open } = await parts.arrive(part);
 * if (open) await idempotency.run(`import:${id}`, () => finish(id));
 */
export class CountDownLatch {
  readonly name: string;
  readonly count: number;
  readonly #redlock: Redlock;
  readonly #options: ArrivalOptions;

  /** @throws TypeError | RangeError when an argument is wrong */
  constructor(redlock: Redlock, name: string, { count, ...options }: CountDownLatchOptions) {
    this.name = checkName(name);
    this.count = checkInteger("count", count, 1, 1_000);
    this.#redlock = redlock;
    this.#options = options;
    this.#roll(options);
  }

  /**
   * Counts `id` as arrived, once; tries for up to `wait` while too few endpoints answer.
   *
   * @param id 1 … 255 characters
   * @returns what is known now. When all have arrived, at least one of them is told `open: true`
   * @throws QuorumError when too few endpoints answered; it may count nevertheless, and can be repeated
   * @throws LimitMismatchError when the latch is in use with another count
   * @throws the signal's reason when it aborts; it may count nevertheless
   */
  arrive(id: string, options: ArrivalOptions = {}): Promise<LatchState> {
    return this.#ask({ to: firstEpoch + closed, id }, options, false);
  }

  /**
   * Waits until it is open, for up to `wait`.
   *
   * @throws ArrivalsMissingError when it was closed after `wait`
   * @throws QuorumError when too few endpoints answered in the last round
   * @throws LimitMismatchError when the latch is in use with another count
   * @throws the signal's reason when it aborts
   */
  async wait(options: ArrivalOptions = {}): Promise<void> {
    await this.#ask({}, options, true);
  }

  /**
   * Looks at it; tries for up to `wait` while too few endpoints answer.
   *
   * @throws QuorumError when too few endpoints answered
   * @throws LimitMismatchError when the latch is in use with another count
   */
  inspect(options: ArrivalOptions = {}): Promise<LatchState> {
    return this.#ask({}, options, false);
  }

  async #ask(first: ArrivalQuery, options: ArrivalOptions, waits: boolean): Promise<LatchState> {
    if (first.id !== undefined) checkText("id", first.id);
    const { count } = this;
    const roll = this.#roll(options);
    const arrived = new Set<string>();
    let epoch = firstEpoch;
    return pollArrivals<LatchState>(roll, checkAcquire(options), first, (snapshot, asked) => {
      const { latest, isDecided, ids, alike, result } = snapshot;
      const told = latest.slice(0, -1);
      // Those who answered have not heard of a reset.
      if (told && told < epoch) return asked;
      if (told > epoch) {
        epoch = told;
        arrived.clear();
        // What was asked of the epoch before is of no use any more.
        if (first.id !== undefined) return { to: epoch + closed, id: first.id };
        if (asked.to !== undefined) return {};
      }
      for (const id of ids) arrived.add(id);
      const isOpen = latest === epoch + open;
      if (isOpen && isDecided) return { value: { open: true, arrived: count, remaining: 0 } };
      // What a minority knows may be gone tomorrow: a quorum has to know that it is open before anybody is told.
      if (isOpen || arrived.size >= count) return { to: epoch + open };
      if (result !== "granted") return asked;
      // Three that come at the same moment, each to two of three endpoints, may each have met one other only. Whoever
      // asks again, after its own arrival is complete, learns of all whose arrivals were. Where all said the same
      // there is no need: who is not among them comes later everywhere, and learns of all of them.
      if (asked.id !== undefined && !alike) return {};
      if (waits) return asked;
      return { value: { open: false, arrived: arrived.size, remaining: count - arrived.size } };
    });
  }

  #roll(options: ArrivalOptions): ArrivalSet {
    const { name, count } = this;
    const settings = syncSettings(this.#redlock, { ttl: defaultTtl }, this.#options, options);
    return { settings, name, key: keyOf(settings.prefix, "latch", name), count };
  }
}
