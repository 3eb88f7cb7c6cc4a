import { protocolOf } from "../bridge/strategy.ts";
import type { LockClient } from "../lock/client.ts";
import { type Hold, Holds, type NotedOptions, notedSchema, type SyncOptions } from "./internal/hold.ts";
import { queueStrategy } from "./internal/queue.ts";

/**
 * A lock that is granted in the order of waiting, under a quorum of endpoints. It is as exclusive as a plain lock, and
 * separate from the plain lock of the same name; the queue only decides who may try for it. It has no fence.
 *
 * A waiter that a quorum's worth of endpoints has refused is served before everybody who comes later, as long as it keeps
 * sending requests. One that stops is skipped after its last pause and a `timeout`; with `wakeUp`, once it does not answer
 * while the lock is free. The wall clocks of the waiters decide who came first: one whose clock is ahead waits longer by
 * that much.
 *
 * @example
 * const till = new FairLock(redlock, "till", { ttl: 30_000 });
 * await using hold = await till.acquire({ wait: 60_000, autoExtend: true });
 * await serve(customer, { signal: hold.signal });
 */
export class FairLock {
  readonly name: string;
  readonly #holds: Holds;

  /**
   * The fair lock of this name.
   *
   * @param options defaults of every acquire; the bounds of `backoff` are those of the first in the queue, the others
   * pause longer
   * @throws TypeError | RangeError when an argument is wrong
   */
  constructor(redlock: LockClient, name: string, options: SyncOptions = {}) {
    this.#holds = new Holds(redlock, name, options, { what: "a fair lock", ofCall: notedSchema });
    this.name = name;
  }

  /**
   * Acquires the lock, waiting in the queue while others hold it or came earlier.
   *
   * @throws LockHeldError when it was not granted within `wait`
   * @throws QuorumError when too few endpoints answered usably in the last round
   * @throws the signal's reason when it aborts; what it acquired is rolled back, and it leaves the queue
   */
  acquire(options: NotedOptions = {}): Promise<Hold> {
    return this.#holds.acquire(options, (settings) =>
      protocolOf(settings, [this.name], options.note, queueStrategy(settings, this.name)),
    );
  }

  /**
   * Acquires the lock if nobody holds it and nobody waits for it.
   *
   * @returns null when somebody does, or contenders that came at the same moment got a part each
   * @throws QuorumError as {@link FairLock.acquire} does
   */
  tryAcquire(options: NotedOptions = {}): Promise<Hold | null> {
    return this.#holds.unlessHeld(options, (given) => this.acquire(given));
  }
}
