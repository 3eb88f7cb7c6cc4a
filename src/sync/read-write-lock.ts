import { acquireWithRetry, type LockStrategy } from "../lock/acquire.ts";
import { Lock } from "../lock/lock.ts";
import { tombstoneRetention } from "../lock/lock-request.ts";
import { checkAcquire, timeUntil } from "../lock/options.ts";
import { pauses } from "../quorum/backoff.ts";
import { rollback } from "../quorum/rollback.ts";
import { keyOf } from "../redis/keys.ts";
import type { Redlock } from "../redlock.ts";
import { randomToken } from "../runtime.ts";
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
import {
  acquireMember,
  memberStrategy,
  membershipOf,
  releaseMember,
  rollbackMember,
} from "./internal/members.ts";

/** The group of all readers. Writers' groups are random tokens, which have other letters and are longer. */
const readers = "r";

/**
 * Held by any number of readers at once, or by one writer alone, under a quorum of endpoints. A writer that waits is
 * announced, and as long as it is nobody begins to read, so that readers cannot starve it. Writers are preferred: while
 * they keep coming, readers wait. Writers among themselves wait in no order.
 *
 * Neither kind of hold is reentrant, and none becomes the other: a reader that asks again while a writer waits, or
 * asks to write, waits for itself until `wait` is over.
 *
 * What bounds a lock bounds a hold: it is a lease, and whoever is paused for longer than its validity may wake up
 * beside its successor. One dead reader frees by itself after its own ttl, whatever the others do.
 *
 * @example
 * const catalogue = new ReadWriteLock(redlock, "catalogue", { ttl: 20_000 });
 * {
 *   await using reading = await catalogue.acquireRead();
 *   await list({ signal: reading.signal });
 * }
 * await using writing = await catalogue.acquireWrite({ wait: 30_000 });
 * await rebuild({ signal: writing.signal });
 */
export class ReadWriteLock {
  readonly name: string;
  readonly #redlock: Redlock;
  readonly #options: SyncOptions;

  /** @throws TypeError | RangeError when an argument is wrong */
  constructor(redlock: Redlock, name: string, options: SyncOptions = {}) {
    this.name = checkName(name);
    this.#redlock = redlock;
    this.#options = options;
    syncSettings(redlock, options);
  }

  /**
   * Takes it for reading, waiting while a writer holds it or waits for it.
   *
   * @throws LockHeldError when there still was a writer after `wait`
   * @throws QuorumError when too few endpoints answered usably in the last round
   * @throws the signal's reason when it aborts; what it took, or may yet take, is withdrawn
   */
  async acquireRead(options: WaitOptions = {}): Promise<Hold> {
    const { name } = this;
    const { signal, deadline } = checkAcquire(options);
    const settings = syncSettings(this.#redlock, this.#options, options);
    const waiting = keyOf(settings.prefix, "writers", name);
    const strategy = memberStrategy(membershipOf(settings, "read-write", name), { key: waiting });
    const outcome = await acquireWithRetry(settings, [name], { signal, deadline, token: readers }, strategy);
    if (!(outcome instanceof Lock)) throw outcome;
    return holdOf(outcome);
  }

  /**
   * Takes it for writing, waiting while anybody holds it. Meanwhile nobody begins to read. The announcement is renewed
   * with every round; when the process dies it ends one and a half pauses and two timeouts after the last one.
   *
   * @throws LockHeldError when somebody still held it after `wait`
   * @throws QuorumError when too few endpoints answered usably in the last round
   * @throws the signal's reason when it aborts; what it took, or may yet take, is withdrawn
   */
  async acquireWrite(options: WaitOptions = {}): Promise<Hold> {
    const { name } = this;
    const { signal, deadline } = checkAcquire(options);
    const settings = syncSettings(this.#redlock, this.#options, options);
    const { runtime, prefix, wait, timeout, backoff } = settings;
    const id = randomToken(runtime);
    const membership = membershipOf(settings, "read-write", name);
    const { key, tombstones } = membership;
    const next = pauses(backoff, runtime);
    let pause = next();
    // Who does not wait keeps nobody from reading.
    const announcements = () =>
      wait > 0
        ? {
            key: keyOf(prefix, "writers", name),
            own: { id, tombstone: `${tombstones}:${id}`, expiry: expiryOf(pause, timeout) },
          }
        : undefined;
    let rounds = 0;
    let waits = true;
    const strategy: LockStrategy = {
      ...memberStrategy(membership),
      keys() {
        rounds += 1;
        return [key];
      },
      // Whoever has been refused once may be again: then no endpoint that grants it now may be a gap for readers.
      acquire: (call, register, asked) => acquireMember(call, register, asked, announcements(), rounds > 1),
      // What a round in vain gives back leaves the announcement to the next one.
      release: (call, register, retention) =>
        rollbackMember(call, register, retention, membership, waits ? undefined : announcements()),
      // The endpoints have been told how long it would be.
      afterFailedRound() {
        const chosen = pause;
        pause = next();
        return chosen;
      },
    };
    // Before anybody hears of it.
    timeUntil(deadline ?? Number.POSITIVE_INFINITY, runtime);
    try {
      const outcome = await acquireWithRetry(
        settings,
        [name],
        { signal, deadline, token: id },
        strategy,
      ).finally(() => {
        waits = false;
      });
      if (!(outcome instanceof Lock)) throw outcome;
      return holdOf(outcome);
    } catch (error) {
      const announced = announcements();
      if (announced) {
        const retraction = rollback(settings, undefined, (call) =>
          releaseMember(call, { keys: [key], value: id }, tombstoneRetention, announced),
        ).done;
        if (!runInBackground(settings, retraction) && !signal?.aborted) await retraction;
      }
      throw error;
    }
  }

  /**
   * Takes it for reading without waiting.
   *
   * @returns null when a writer holds it or waits for it
   * @throws QuorumError as {@link ReadWriteLock.acquireRead} does
   */
  tryAcquireRead(options: WaitOptions = {}): Promise<Hold | null> {
    return unlessHeld(this.acquireRead({ ...options, wait: 0 }));
  }

  /**
   * Takes it for writing without waiting, and without being announced.
   *
   * @returns null when anybody holds it, or writers that came at the same moment got a part each
   * @throws QuorumError as {@link ReadWriteLock.acquireWrite} does
   */
  tryAcquireWrite(options: WaitOptions = {}): Promise<Hold | null> {
    return unlessHeld(this.acquireWrite({ ...options, wait: 0 }));
  }
}

/**
 * How long an announcement stands after a round, in ms: a writer that lives has asked again by then, after the rest of
 * its round, its pause, and the next request's way. Timers are late on a busy machine.
 */
function expiryOf(pause: number, timeout: number): number {
  return Math.min(2_147_483_647, Math.ceil(Math.max(500, 1.5 * pause + 2 * timeout)));
}
