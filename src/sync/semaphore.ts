import { protocolOf } from "../bridge/strategy.ts";
import { integer } from "../check.ts";
import type { LockClient } from "../lock/client.ts";
import { type Hold, Holds, type NotedOptions, notedSchema, type SyncOptions } from "./internal/hold.ts";
import { slotStrategy } from "./internal/slots.ts";

/** The limit of a {@link Semaphore}, and the defaults of every acquire. */
export interface SemaphoreOptions extends SyncOptions {
  /**
   * Most permits held at once: an integer from 1 to 1 000, the same wherever the semaphore is used. Every request names
   * a key per permit.
   */
  readonly limit: number;
}

/** A permit of a {@link Semaphore}. It is valid for `remaining()` ms, like a lock. */
export interface Permit extends Hold {
  /** The number of the permit, 0 … limit − 1, for example to choose a port. No two holders have the same. */
  readonly slot: number;
}

/**
 * At most `limit` holders at once, under a quorum of endpoints. Each permit is a lock of its own, so the limit is as
 * exact as a lock is exclusive. A permit is a lease: a holder that is paused for longer than its validity may wake up
 * beside its successor, and a dead holder's permit is free after its ttl. Waiters are served in no order.
 *
 * @example
 * const uploads = new Semaphore(redlock, "uploads", { limit: 3, ttl: 30_000 });
 * await using permit = await uploads.acquire({ wait: 10_000, autoExtend: true });
 * await upload(file, { signal: permit.signal });
 */
export class Semaphore {
  readonly name: string;
  readonly limit: number;
  readonly #holds: Holds;

  /**
   * The semaphore of this name. The options other than `limit` are the defaults of its calls.
   *
   * @throws TypeError | RangeError when an argument is wrong
   */
  constructor(redlock: LockClient, name: string, given: SemaphoreOptions) {
    const own = { limit: integer(1, 1_000) };
    const hints = { required: ["limit"], usual: "limit" };
    this.#holds = new Holds(redlock, name, given, {
      what: "a semaphore",
      own,
      ofCall: notedSchema,
      ...hints,
    });
    this.name = name;
    this.limit = given.limit;
  }

  /**
   * Acquires a permit, waiting while none is free.
   *
   * @throws LockHeldError when none was free within `wait`
   * @throws LimitMismatchError when the semaphore is in use with another limit
   * @throws QuorumError when too few endpoints answered usably in the last round
   * @throws the signal's reason when it aborts; what it acquired, or may still acquire, is rolled back
   */
  async acquire(options: NotedOptions = {}): Promise<Permit> {
    let slot = 0;
    const hold = await this.#holds.acquire(options, (settings) => {
      const strategy = slotStrategy(settings, this, (granted) => {
        slot = granted;
      });
      return protocolOf(settings, [this.name], options.note, strategy);
    });
    return Object.assign(hold, { slot });
  }

  /**
   * Acquires a permit without waiting.
   *
   * @returns null when none was free, or contenders that came at the same moment got a part each
   * @throws LimitMismatchError | QuorumError as {@link Semaphore.acquire} does
   */
  tryAcquire(options: NotedOptions = {}): Promise<Permit | null> {
    return this.#holds.unlessHeld(options, (given) => this.acquire(given));
  }
}
