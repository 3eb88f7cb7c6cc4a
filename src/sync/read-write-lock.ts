import type { LockClient } from "../lock/client.ts";
import {
  checkSyncOptions,
  type Hold,
  Holds,
  type SyncOptions,
  syncSchema,
  type WaitOptions,
} from "./internal/hold.ts";
import { readerStrategy, writerStrategy } from "./internal/writers.ts";

/**
 * Held by any number of readers at once, or by one writer alone, under a quorum of endpoints. A waiting writer is
 * announced, and while it is, no new reader enters: readers cannot starve a writer. Writers have preference: while
 * writers keep coming, readers wait. Writers are served in no order.
 *
 * Holds are not reentrant, and a read hold cannot be upgraded: a reader that reads again while a writer waits, or that
 * asks to write, waits for itself until `wait` is over.
 *
 * A hold is a lease, like a lock: a holder that is paused for longer than its validity may wake up beside its
 * successor. A dead reader's hold expires after its own ttl, whatever the other readers do.
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
  readonly #holds: Holds;

  /**
   * The read-write lock of this name. The options are the defaults of its calls.
   *
   * @throws TypeError | RangeError when an argument is wrong
   */
  constructor(redlock: LockClient, name: string, options: SyncOptions = {}) {
    this.#holds = new Holds(redlock, name, checkSyncOptions("a read-write lock", options, syncSchema));
    this.name = name;
  }

  /**
   * Acquires the lock for reading, waiting while a writer holds it or waits for it.
   *
   * @throws LockHeldError when there still was a writer after `wait`
   * @throws QuorumError when too few endpoints answered usably in the last round
   * @throws the signal's reason when it aborts; what it acquired, or may still acquire, is rolled back
   */
  acquireRead(options: WaitOptions = {}): Promise<Hold> {
    return this.#holds.acquire(options, (settings) => readerStrategy(settings, this.name));
  }

  /**
   * Acquires the lock for writing, waiting while anybody holds it. From the first refusal until it gives up, no new
   * reader enters. If the process dies meanwhile, that ends one and a half pauses and two timeouts after its last round,
   * but not before 500 ms.
   *
   * @throws LockHeldError when somebody still held it after `wait`
   * @throws QuorumError when too few endpoints answered usably in the last round
   * @throws RangeError when the deadline has passed; nothing was sent
   * @throws the signal's reason when it aborts; what it acquired, or may still acquire, is rolled back
   */
  acquireWrite(options: WaitOptions = {}): Promise<Hold> {
    return this.#holds.acquire(options, (settings) => writerStrategy(settings, this.name));
  }

  /**
   * Acquires the lock for reading without waiting.
   *
   * @returns null when a writer holds it or waits for it
   * @throws QuorumError as {@link ReadWriteLock.acquireRead} does
   */
  tryAcquireRead(options: WaitOptions = {}): Promise<Hold | null> {
    return this.#holds.unlessHeld(options, (given) => this.acquireRead(given));
  }

  /**
   * Acquires the lock for writing without waiting, and without keeping readers out.
   *
   * @returns null when anybody holds it, or writers that came at the same moment got a part each
   * @throws QuorumError as {@link ReadWriteLock.acquireWrite} does
   */
  tryAcquireWrite(options: WaitOptions = {}): Promise<Hold | null> {
    return this.#holds.unlessHeld(options, (given) => this.acquireWrite(given));
  }
}
