import { unlessAborted } from "../../abort.ts";
import { acquireWithRetry, type LockStrategy } from "../../bridge/strategy.ts";
import { checkOptions, checkText, type OptionHints, type Schema } from "../../check.ts";
import { LockHeldError } from "../../errors.ts";
import { orHeld } from "../../lock/acquire.ts";
import { clientStateOf, type LockClient } from "../../lock/client.ts";
import type { Lock } from "../../lock/lock.ts";
import {
  type AcquireOptions,
  callSchema,
  type LockOptions,
  lockSchema,
  resolveSettings,
  type Settings,
} from "../../lock/options.ts";
import type { CellAnswer } from "../../redis/cell.ts";
import { keepAlive } from "../../runtime.ts";

// What the synchronizers have in common: the options of a call, the acquire, and the handle it returns.

/** What can be set for a synchronizer and overridden in each call. `undefined` leaves the client's default in place. */
export type SyncOptions = Omit<LockOptions, "fencing">;

/** {@link SyncOptions}, and what belongs to one call only. */
export type WaitOptions = SyncOptions & Pick<AcquireOptions, "signal" | "deadline">;

/** {@link WaitOptions} of what is held by a value that has room for a note. */
export type NotedOptions = WaitOptions & Pick<AcquireOptions, "note">;

const { fencing: _fencing, ...ofLocks } = lockSchema;

/** The schema of {@link SyncOptions}. */
export const syncSchema: Schema<SyncOptions> = ofLocks;

/** The schema of {@link WaitOptions}. */
export const waitSchema: Schema<WaitOptions> = { ...syncSchema, ...callSchema };

/** The schema of {@link NotedOptions}. */
export const notedSchema: Schema<NotedOptions> = { ...waitSchema, note: checkText };

/** Where options belong that somebody gives elsewhere. */
const elsewhere = {
  endpoints: "new Redlock()",
  runtime: "new Redlock()",
  signal: "the call",
  deadline: "the call",
  fencing: "locks",
  note: "calls of locks, semaphores and fair locks",
  token: "ReentrantLock, as owner",
  wakeUp: "locks, and synchronizers whose waiters are told",
};

/**
 * Checks the options of a synchronizer.
 *
 * @param hints what must be given, and what is meant where somebody gives a number. Default: nothing, and the ttl
 * @throws TypeError | RangeError when they are not an object, or one is unknown, of something else or wrong
 */
export function checkSyncOptions<Options extends object>(
  what: string,
  options: Options,
  schema: Schema<Options>,
  hints: OptionHints = {},
): Options {
  return checkOptions(what, options, schema, { usual: "ttl", elsewhere, ...hints });
}

/**
 * The handle of a successful acquire. Like a lock it is valid for `remaining()` ms, and ends by itself unless it is
 * extended.
 *
 * @example
 * await using hold = await new FairLock(redlock, "till").acquire();
 */
export interface Hold extends AsyncDisposable {
  /** The ttl that was last requested from Redis, in ms. */
  readonly ttl: number;
  /** Aborts with `LockLostError` before another can acquire what this hold has. A release does not abort it. */
  readonly signal: AbortSignal;
  /** ms of validity that remain; ≤ 0 once it has ended. */
  remaining(): number;
  /**
   * Extends it on a quorum. Never creates a hold that is gone.
   *
   * @param ttl what to request from now on, in ms, an integer from 10 to 2 147 483 647; default: as before
   * @returns the new validity in ms
   * @throws LockLostError when it is gone
   * @throws QuorumError when too few endpoints answered; it may be tried again while validity remains
   */
  extend(ttl?: number): Promise<number>;
  /**
   * Releases it on every endpoint.
   *
   * @returns true: released on a quorum; false: it was already gone, or released before
   * @throws QuorumError when it cannot be known; the ttl frees it
   */
  release(): Promise<boolean>;
  /**
   * Asks a quorum whether it is still held.
   *
   * @throws QuorumError when too few endpoints answered
   */
  verify(): Promise<boolean>;
}

/** The strategy of one acquire of a synchronizer. */
export interface HoldStrategy<Reply extends CellAnswer = CellAnswer> extends LockStrategy<Reply> {
  /** Called when the hold was acquired, before its handle is returned. */
  acquired?(): void;
  /** Called when it was not. Removes what the attempt left on the endpoints beside what its rounds roll back. */
  cleanUp?(): Promise<void> | undefined;
}

/** The holds of one synchronizer. */
export class Holds {
  readonly #redlock: LockClient;
  readonly #name: string;
  readonly #defaults: SyncOptions;
  readonly #schema: Schema<NotedOptions>;

  /** @param schema of the options of a call. Default: without a note */
  constructor(
    redlock: LockClient,
    name: string,
    defaults: SyncOptions,
    schema: Schema<NotedOptions> = waitSchema as Schema<NotedOptions>,
  ) {
    this.#redlock = redlock;
    this.#name = checkName(name);
    this.#defaults = defaults;
    this.#schema = schema;
    syncSettings(redlock, defaults);
  }

  /**
   * Acquires one, waiting for it if it is not free.
   *
   * @param strategyOf makes the strategy of this call
   * @throws LockHeldError | QuorumError | RedlockError what the strategy or the last round ended with
   * @throws TypeError | RangeError when an option is wrong; nothing was sent
   * @throws the signal's reason when it aborts
   */
  async acquire(options: NotedOptions, strategyOf: (settings: Settings) => HoldStrategy): Promise<Hold> {
    checkSyncOptions("acquire", options, this.#schema);
    const settings = syncSettings(this.#redlock, this.#defaults, options);
    const strategy = strategyOf(settings);
    try {
      const lock = await acquireWithRetry(settings, [this.#name], options, strategy);
      strategy.acquired?.();
      return holdOf(lock);
    } catch (error) {
      const cleanup = strategy.cleanUp?.();
      // An abort ends the call at once; the cleanup goes on.
      if (cleanup && !keepAlive(settings, cleanup)) await unlessAborted(cleanup, options.signal);
      throw error;
    }
  }

  /** Acquires without waiting: the hold, or null where others hold it. */
  async unlessHeld<Held>(
    options: NotedOptions,
    acquire: (options: NotedOptions) => Promise<Held>,
  ): Promise<Held | null> {
    const once = { ...checkSyncOptions("acquire", options, this.#schema), wait: 0 };
    const outcome = await orHeld(acquire(once));
    return outcome instanceof LockHeldError ? null : outcome;
  }
}

/** Narrows a Lock to Hold: hides the token, and the lock itself, so that it cannot be passed to `handoff`. */
function holdOf(lock: Lock): Hold {
  return {
    get ttl() {
      return lock.ttl;
    },
    get signal() {
      return lock.signal;
    },
    remaining: () => lock.remaining(),
    extend: (ttl) => lock.extend(ttl),
    release: () => lock.release(),
    verify: () => lock.verify(),
    [Symbol.asyncDispose]: () => lock[Symbol.asyncDispose](),
  };
}

/**
 * The name of a synchronizer: 1 … 1 024 characters.
 *
 * @throws TypeError | RangeError when it is not
 */
export function checkName(name: string): string {
  return checkText("name", name, 1_024);
}

/** A call's settings: the client's defaults, then these layers. */
export function syncSettings(redlock: LockClient, ...layers: (LockOptions | undefined)[]): Settings {
  const { settings, options } = clientStateOf(redlock);
  return resolveSettings(settings, options, ...layers);
}
