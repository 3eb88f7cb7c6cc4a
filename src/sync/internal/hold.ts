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

/** Options of a synchronizer, which each call can override. Default: the client's. */
export type SyncOptions = Omit<LockOptions, "fencing">;

/** Options of one call. */
export type WaitOptions = SyncOptions & Pick<AcquireOptions, "signal" | "deadline">;

/** For values with room for a note. */
export type NotedOptions = WaitOptions & Pick<AcquireOptions, "note">;

const { fencing: _fencing, ...ofLocks } = lockSchema;

export const syncSchema: Schema<SyncOptions> = ofLocks;

export const waitSchema: Schema<WaitOptions> = { ...syncSchema, ...callSchema };

export const notedSchema: Schema<NotedOptions> = { ...waitSchema, note: checkText };

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

export function checkSyncOptions<Options extends object>(
  what: string,
  options: Options,
  schema: Schema<Options>,
  hints: OptionHints = {},
): Options {
  return checkOptions(what, options, schema, { usual: "ttl", elsewhere, ...hints });
}

/**
 * The handle of a successful acquire. You may rely on it for `remaining()` ms, as on a lock.
 *
 * @example
 * await using hold = await new FairLock(redlock, "till").acquire();
 */
export interface Hold
  extends AsyncDisposable,
    Pick<Lock, "ttl" | "signal" | "remaining" | "extend" | "release" | "verify"> {}

export interface HoldProtocol<Reply extends CellAnswer = CellAnswer> extends Protocol<Reply> {
  /** Called before the handle is returned. */
  acquired?(): void;
  /** Removes the keys of a call that acquired nothing. */
  cleanUp?(): Promise<void> | undefined;
}

interface Described<Own> extends OptionHints {
  readonly what: string;
  readonly call: string;
  readonly own?: Schema<Own>;
  /** Default: without a note. */
  readonly ofCall?: Schema<NotedOptions>;
}

export class Holds {
  readonly #redlock: LockClient;
  readonly #name: string;
  readonly #defaults: SyncOptions;
  readonly #schema: Schema<NotedOptions>;

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

  /** @throws LockHeldError | QuorumError | RedlockError the error of the protocol or the last round */
  async acquire(options: NotedOptions, protocolOf: (settings: Settings) => HoldProtocol): Promise<Hold> {
    const settings = this.settings(options, "acquire");
    const protocol = protocolOf(settings);
    try {
      const lock = await acquire(settings, [this.#name], options, protocol);
      protocol.acquired?.();
      return holdOf(lock);
    } catch (error) {
      const cleanup = protocol.cleanUp?.();
      // After an abort, the cleanup goes on without the call.
      if (cleanup && !keepAlive(settings, cleanup)) await unlessAborted(cleanup, options.signal);
      throw error;
    }
  }

  settings(options: NotedOptions, what = "inspect"): Settings {
    checkSyncOptions(what, options, this.#schema);
    return settingsOf(this.#redlock, this.#defaults, options);
  }

  async unlessHeld<Held>(
    options: NotedOptions,
    acquire: (options: NotedOptions) => Promise<Held>,
  ): Promise<Held | null> {
    const once = checkTryOptions(checkSyncOptions("acquire", options, this.#schema));
    const outcome = await orHeld(acquire(once));
    return outcome instanceof LockHeldError ? null : outcome;
  }
}

/** Hides the token, and the lock itself, which must not be passed to `handoff`. */
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
