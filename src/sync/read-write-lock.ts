import { type Contest, contend } from "../acquire.ts";
import { keyOf, tombstoneRetention } from "../grant.ts";
import { Lock } from "../lock.ts";
import { checkAcquire, handOver } from "../options.ts";
import type { Redlock } from "../redlock.ts";
import { randomToken } from "../runtime.ts";
import { withdraw } from "../withdraw.ts";
import {
  checkName,
  type Hold,
  holdOf,
  type SyncOptions,
  syncSettings,
  unlessHeld,
  type WaitOptions,
} from "./hold.ts";
import { contestMembers, dropMember, takeMember } from "./members.ts";

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
    const [key, waiting] = keysOf(settings.prefix, name);
    const contest = contestMembers(key, { key: waiting });
    const outcome = await contend(settings, [name], { signal, deadline, token: readers }, contest);
    if (!(outcome instanceof Lock)) throw outcome;
    return holdOf(outcome);
  }

  /**
   * Takes it for writing, waiting while anybody holds it. Meanwhile nobody begins to read. The announcement stands for
   * the ttl asked for, at least 3 s, and is renewed with every round; pauses between rounds that are longer than that
   * let readers in.
   *
   * @throws LockHeldError when somebody still held it after `wait`
   * @throws QuorumError when too few endpoints answered usably in the last round
   * @throws the signal's reason when it aborts; what it took, or may yet take, is withdrawn
   */
  async acquireWrite(options: WaitOptions = {}): Promise<Hold> {
    const { name } = this;
    const { signal, deadline } = checkAcquire(options);
    const settings = syncSettings(this.#redlock, this.#options, options);
    const { runtime, prefix, wait } = settings;
    const id = randomToken(runtime);
    const [key, waiting] = keysOf(prefix, name);
    const own = { id, tombstone: `${keyOf(prefix, "void", name)}:${id}` };
    // Who does not wait keeps nobody from reading.
    const announcements = wait > 0 ? { key: waiting, own } : undefined;
    let rounds = 0;
    let waits = true;
    const contest: Contest = {
      ...contestMembers(key),
      places() {
        rounds += 1;
        return [key];
      },
      // Whoever has been refused once may be again: then no endpoint that grants it now may be a gap for readers.
      take: (call, register, asked) => takeMember(call, register, asked, announcements, rounds > 1),
      // What a round in vain gives back leaves the announcement to the next one.
      drop: (call, register, retention) =>
        dropMember(call, register, retention, waits ? undefined : announcements),
    };
    try {
      const outcome = await contend(settings, [name], { signal, deadline, token: id }, contest).finally(
        () => {
          waits = false;
        },
      );
      if (!(outcome instanceof Lock)) throw outcome;
      return holdOf(outcome);
    } catch (error) {
      if (announcements) {
        const retraction = withdraw(settings, undefined, (call) =>
          dropMember(call, { keys: [key], value: id }, tombstoneRetention, announcements),
        ).done;
        if (!handOver(settings, retraction) && !signal?.aborted) await retraction;
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

/** Where holds are, and the announcements of writers that wait. */
function keysOf(prefix: string, name: string): [holds: string, writers: string] {
  return [keyOf(prefix, "read-write", name), keyOf(prefix, "writers", name)];
}
