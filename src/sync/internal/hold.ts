import { checkName, checkOptions, checkText, type OptionHints, type Schema } from "../../check/check.ts";
import { LockHeldError } from "../../errors/errors.ts";
import { acquire, orHeld } from "../../lock/acquire.ts";
import { checkCall, type LockClient, settingsOf } from "../../lock/client.ts";
import type { Lock } from "../../lock/lock.ts";
import {
  type AcquireOptions,
  callSchema,
  checkTryOptions,
  type LockOptions,
  lockSchema,
  type Settings,
} from "../../lock/options.ts";
import type { Protocol } from "../../lock/protocol.ts";
import type { CellAnswer } from "../../redis/cell.ts";
import { unlessAborted } from "../../runtime/abort.ts";
import { keepAlive } from "../../runtime/runtime.ts";

// The common part of the synchronizers: the options of a call, the acquire, and the handle it returns.

/** Options that you can set for a synchronizer and override in each call. `undefined` leaves the client's default in place. */
export type SyncOptions = Omit<LockOptions, "fencing">;

/** {@link SyncOptions}, and what belongs to one call only. */
export type WaitOptions = SyncOptions & Pick<AcquireOptions, "signal" | "deadline">;

/** {@link WaitOptions} of a synchronizer whose value has room for a note. */
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
 * @param hints the required options, and the option that a plain number stands for. Default: nothing, and the ttl
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
export interface Hold
  extends AsyncDisposable,
    Pick<Lock, "ttl" | "signal" | "remaining" | "extend" | "release" | "verify"> {}

/** The protocol of one acquire of a synchronizer. */
export interface HoldProtocol<Reply extends CellAnswer = CellAnswer> extends Protocol<Reply> {
  /** Called when the hold was acquired, before its handle is returned. */
  acquired?(): void;
  /** Called when it was not. Removes the call's other keys from the endpoints, beside the claims of its rounds. */
  cleanUp?(): Promise<void> | undefined;
}

/** The name of a synchronizer in errors, and the options that it adds. */
interface Described<Own> extends OptionHints {
  readonly what: string;
  /** How one is made. */
  readonly call: string;
  /** The schema of its own options. */
  readonly own?: Schema<Own>;
  /** The schema of a call. Default: without a note. */
  readonly ofCall?: Schema<NotedOptions>;
}

/** The holds of one synchronizer. */
export class Holds {
  readonly #redlock: LockClient;
  readonly #name: string;
  readonly #defaults: SyncOptions;
  readonly #schema: Schema<NotedOptions>;

  /**
   * @param defaults of all calls, and its own options
   * @throws TypeError | RangeError when an argument is wrong
   */
  constructor(
    redlock: LockClient,
    name: string,
    defaults: SyncOptions,
    { what, call, own, ofCall = waitSchema as Schema<NotedOptions>, ...hints }: Described<unknown>,
  ) {
    checkCall(call, { redlock, name, options: defaults });
    checkSyncOptions(what, defaults, { ...syncSchema, ...own }, hints);
    this.#redlock = redlock;
    this.#name = checkName("name", name);
    this.#defaults = defaults;
    this.#schema = ofCall;
    settingsOf(redlock, defaults);
  }

  /**
   * Acquires one, waiting for it if it is not free.
   *
   * @param protocolOf makes the protocol of this call
   * @throws LockHeldError | QuorumError | RedlockError the error of the protocol or the last round
   * @throws TypeError | RangeError when an option is wrong. Nothing was sent
   * @throws the signal's reason when it aborts
   */
  async acquire(options: NotedOptions, protocolOf: (settings: Settings) => HoldProtocol): Promise<Hold> {
    const settings = this.settings(options, "acquire");
    const protocol = protocolOf(settings);
    try {
      const lock = await acquire(settings, [this.#name], options, protocol);
      protocol.acquired?.();
      return holdOf(lock);
    } catch (error) {
      const cleanup = protocol.cleanUp?.();
      // An abort ends the call at once, but the cleanup goes on.
      if (cleanup && !keepAlive(settings, cleanup)) await unlessAborted(cleanup, options.signal);
      throw error;
    }
  }

  /** The settings of a call. */
  settings(options: NotedOptions, what = "inspect"): Settings {
    checkSyncOptions(what, options, this.#schema);
    return settingsOf(this.#redlock, this.#defaults, options);
  }

  /** Acquires without waiting: the hold, or null where others hold it. */
  async unlessHeld<Held>(
    options: NotedOptions,
    acquire: (options: NotedOptions) => Promise<Held>,
  ): Promise<Held | null> {
    const once = checkTryOptions(checkSyncOptions("acquire", options, this.#schema));
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
