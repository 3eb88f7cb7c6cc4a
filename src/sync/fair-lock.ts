import { acquireWithRetry } from "../lock/acquire.ts";
import { Lock } from "../lock/lock.ts";
import { checkAcquire } from "../lock/options.ts";
import { runRound } from "../quorum/round.ts";
import type { Redlock } from "../redlock.ts";
import { runInBackground } from "../wait-until.ts";
import {
  checkName,
  type Hold,
  holdOf,
  type SyncOptions,
  syncSettings,
  unlessHeld,
  type WaitOptions,
} from "./internal/hold.ts";
import { queueStrategy } from "./internal/queue.ts";

/**
 * A lock that goes to whoever has waited for it longest, under a quorum of endpoints. It is as exclusive as a plain
 * lock, and apart from the plain lock of the same name; the queue decides who may try for it, and nothing else.
 *
 * Whoever has been told by a quorum's worth of refusals that it waits is served before everybody who comes later, as
 * long as it keeps asking; one that stops is passed after its last pause and a `timeout`. Who comes later is decided
 * by the wall clocks of those who wait: one whose clock is ahead waits that much longer. There is no fence.
 *
 * @example
 * const till = new FairLock(redlock, "till", { ttl: 30_000 });
 * await using turn = await till.acquire({ wait: 60_000, autoExtend: true });
 * await serve(customer, { signal: turn.signal });
 */
export class FairLock {
  readonly name: string;
  readonly #redlock: Redlock;
  readonly #options: SyncOptions;

  /**
   * @param options defaults of every acquire; the pause of the first in the queue is within the bounds of `backoff`,
   * the others' are longer
   * @throws TypeError | RangeError when an argument is wrong
   */
  constructor(redlock: Redlock, name: string, options: SyncOptions = {}) {
    this.name = checkName(name);
    this.#redlock = redlock;
    this.#options = options;
    syncSettings(redlock, options);
  }

  /**
   * Takes the lock, waiting in the queue until it is its turn.
   *
   * @throws LockHeldError when it was not after `wait`
   * @throws QuorumError when too few endpoints answered usably in the last round
   * @throws the signal's reason when it aborts; the place in the queue is given up
   */
  async acquire(options: WaitOptions = {}): Promise<Hold> {
    const { signal, deadline } = checkAcquire(options);
    const settings = syncSettings(this.#redlock, this.#options, options);
    const strategy = queueStrategy(settings, this.name);
    let outcome: unknown;
    try {
      outcome = await acquireWithRetry(settings, [this.name], { signal, deadline }, strategy);
      if (outcome instanceof Lock) {
        strategy.keep();
        return holdOf(outcome);
      }
    } catch (error) {
      outcome = error;
    }
    // Those behind it need not wait until its ticket expiries. An abort ends the call at once; this goes on.
    const left = runRound({ ...settings, onFailure: undefined }, strategy.leave).done;
    if (!runInBackground(settings, left) && !signal?.aborted) await left;
    throw outcome;
  }

  /**
   * Takes the lock if nobody holds it nor waits for it.
   *
   * @returns null when somebody does, or contenders that came at the same moment got a part each
   * @throws QuorumError when that could not be told
   */
  tryAcquire(options: WaitOptions = {}): Promise<Hold | null> {
    return unlessHeld(this.acquire({ ...options, wait: 0 }));
  }
}
