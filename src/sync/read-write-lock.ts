import type { LockClient } from "../lock/client.ts";
import type { Settings } from "../lock/options.ts";
import type { Protocol } from "../lock/protocol.ts";
import { runRound } from "../quorum/round.ts";
import { maxTimerDelay, randomToken } from "../runtime/runtime.ts";
import { type Hold, type HoldProtocol, Holds, type SyncOptions, type WaitOptions } from "./internal/hold.ts";
import { memberOf } from "./internal/members.ts";
import { knownPauses, toldPause } from "./internal/queue-pacer.ts";

/**
 * Held by any number of readers at once, or by one writer alone. While a writer waits, no new reader enters, so readers
 * wait as long as writers keep coming. Writers are served in no order.
 *
 * Holds are not reentrant, and a read hold cannot be upgraded: a reader that reads again while a writer waits, or that
 * asks to write, waits for itself until `wait` is over.
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

  constructor(redlock: LockClient, name: string, options: SyncOptions = {}) {
    this.#holds = new Holds(redlock, name, options, {
      what: "a read-write lock",
      call: "new ReadWriteLock(redlock, name)",
    });
    this.name = name;
  }

  /**
   * Acquires the lock for reading, waiting while a writer holds it or waits for it.
   *
   * @throws LockHeldError when there still was a writer after `wait`
   * @throws QuorumError when too few endpoints answered usably in the last round
   * @throws the signal's reason. Acquired locks are rolled back
   */
  acquireRead(options: WaitOptions = {}): Promise<Hold> {
    return this.#holds.acquire(options, (settings) => reader(settings, this.name));
  }

  /**
   * Acquires the lock for writing, waiting while anybody holds it. Meanwhile no new reader enters. If the process dies,
   * readers enter again after one and a half pauses and two timeouts, at least 500 ms.
   *
   * @throws LockHeldError when somebody still held it after `wait`
   * @throws QuorumError when too few endpoints answered usably in the last round
   * @throws the signal's reason. Acquired locks are rolled back
   */
  acquireWrite(options: WaitOptions = {}): Promise<Hold> {
    return this.#holds.acquire(options, (settings) => writer(settings, this.name));
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
   * @returns null when anybody holds it, or writers that came at once got a part each
   * @throws QuorumError as {@link ReadWriteLock.acquireWrite} does
   */
  tryAcquireWrite(options: WaitOptions = {}): Promise<Hold | null> {
    return this.#holds.unlessHeld(options, (given) => this.acquireWrite(given));
  }
}

const kind = "read-write";
const writers = "writers";

/** A writer's group begins with another letter. */
const readers = "r";

/** One release may serve all waiters. */
function reader(settings: Settings, name: string): Protocol {
  return memberOf(settings, name, { group: () => readers, waiter: { kind, name: readers }, writers });
}

/**
 * A waiting writer is announced from its first refusal on. Every round renews the announcement, which expires if the
 * process dies.
 */
function writer(settings: Settings, name: string): HoldProtocol {
  const { runtime, wait, timeout, backoff } = settings;
  const pauses = knownPauses(runtime, backoff);
  const told = toldPause(settings);
  let id = randomToken(runtime);
  let rounds = 0;
  // Without a later round, readers need not make room.
  let waits = wait > 0;
  const member = memberOf(settings, name, {
    group: () => id,
    waiter: { kind },
    writers,
    announces() {
      if (!waits) return undefined;
      // A living writer has sent its next request by then, even if timers fire late.
      const longest = Math.max(pauses.longest(), told.longest);
      const expiry = Math.min(maxTimerDelay, Math.ceil(Math.max(500, 1.5 * longest + 2 * timeout)));
      // There may be another refusal, so an endpoint that grants must keep readers out, too.
      return { expiry, always: rounds > 1 };
    },
  });
  return {
    ...member,
    cell(nonce) {
      rounds += 1;
      return member.cell(nonce);
    },
    confirm(round, cell, ttl) {
      // The release removes the announcement for good, and another round needs another one.
      id = randomToken(runtime);
      return member.confirm!(round, cell, ttl);
    },
    // The expiry includes this pause.
    next: (round) => ({ pause: Math.max(pauses.pause(), told.after(round)) }),
    cleanUp() {
      // Nothing was announced.
      if (!waits || rounds === 0) return undefined;
      waits = false;
      const own = member.cell(id);
      const quiet = { ...settings, onFailure: undefined };
      return runRound(quiet, (call) => member.release(call, own, call, true)).done;
    },
  };
}
