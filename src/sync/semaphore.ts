import { checkInteger } from "../check.ts";
import { acquireWithRetry } from "../lock/acquire.ts";
import { Lock } from "../lock/lock.ts";
import { checkAcquire } from "../lock/options.ts";
import type { Redlock } from "../redlock.ts";
import {
  checkName,
  type Hold,
  holdOf,
  type SyncOptions,
  syncSettings,
  unlessHeld,
  type WaitOptions,
} from "./internal/hold.ts";
import { slotStrategy } from "./internal/slots.ts";

/** How many may hold a permit at once, and the defaults of every acquire. */
export interface SemaphoreOptions extends SyncOptions {
  /** An integer from 1 to 1 000, the same wherever the semaphore is used. Every request names a key per permit. */
  readonly limit: number;
}

/** A permit: what its holder may rely on is told by `remaining()` and `signal`, as for a lock. */
export interface Permit extends Hold {
  /** Which of the permits it is, 0 … limit − 1; nobody else holds the same one. Say, the port to use. */
  readonly slot: number;
}

/**
 * At most `limit` holders at once, under a quorum of endpoints, and by the same argument as a lock: each permit is
 * a lock of its own. What bounds a lock bounds a permit: it is a lease, and whoever is paused for longer than its
 * ttl may wake up beside its successor. A dead holder's permit returns after its ttl. Waiting is not in order.
 *
 * @example
 * const uploads = new Semaphore(redlock, "uploads", { limit: 3, ttl: 30_000 });
 * await using permit = await uploads.acquire({ wait: 10_000, autoExtend: true });
 * await upload(file, { signal: permit.signal });
 */
export class Semaphore {
  readonly name: string;
  readonly limit: number;
  readonly #redlock: Redlock;
  readonly #options: SyncOptions;

  /** @throws TypeError | RangeError when an argument is wrong */
  constructor(redlock: Redlock, name: string, { limit, ...options }: SemaphoreOptions) {
    this.name = checkName(name);
    this.limit = checkInteger("limit", limit, 1, 1_000);
    this.#redlock = redlock;
    this.#options = options;
    syncSettings(redlock, options);
  }

  /**
   * Takes a permit, waiting for one if none is free.
   *
   * @throws LockHeldError when none was free after `wait`
   * @throws LimitMismatchError when the semaphore is in use with another limit
   * @throws QuorumError when too few endpoints answered usably in the last round
   * @throws the signal's reason when it aborts; what it took, or may yet take, is withdrawn
   */
  async acquire(options: WaitOptions = {}): Promise<Permit> {
    const { name, limit } = this;
    const { signal, deadline } = checkAcquire(options);
    const settings = syncSettings(this.#redlock, this.#options, options);
    const { runtime, prefix, endpoints } = settings;
    const strategy = slotStrategy({ runtime, prefix, name, limit, count: endpoints.length });
    const outcome = await acquireWithRetry(settings, [name], { signal, deadline }, strategy);
    if (!(outcome instanceof Lock)) throw outcome;
    return Object.assign(holdOf(outcome), { slot: strategy.slot() });
  }

  /**
   * Takes a permit without waiting.
   *
   * @returns null when none was free, or contenders that came at the same moment got a part each
   * @throws LimitMismatchError | QuorumError as {@link Semaphore.acquire} does
   */
  tryAcquire(options: WaitOptions = {}): Promise<Permit | null> {
    return unlessHeld(this.acquire({ ...options, wait: 0 }));
  }
}
