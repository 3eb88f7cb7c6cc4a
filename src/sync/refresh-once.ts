import { checkName, checkType, type Schema, typed, wrongType } from "../check/check.ts";
import { LockLostError, secondsHint } from "../errors/errors.ts";
import { checkCall, type LockClient, settingsOf } from "../lock/client.ts";
import type { Lock } from "../lock/lock.ts";
import type { Settings } from "../lock/options.ts";
import { retry } from "../quorum/retry.ts";
import { unlessAborted } from "../runtime/abort.ts";
import { maxTimerDelay } from "../runtime/runtime.ts";
import { RefreshedNotWrittenError } from "./errors.ts";
import { acquireLooking } from "./internal/acquire-looking.ts";
import { checkSyncOptions, type NotedOptions, notedSchema } from "./internal/hold.ts";

/** The argument of `refresh` and `write`. */
export interface RefreshContext {
  /** Larger than the fence of every earlier refresh of this key. The store must refuse a smaller one than it has. */
  readonly fence: number;
  /**
   * In `refresh`: aborts after `maxHold`, but not when the lock is lost, because the answer would be lost. In `write`:
   * aborts after half of the ttl, and then it is tried again.
   */
  readonly signal: AbortSignal;
}

/** Options of {@link refreshOnce}. */
export interface RefreshOptions<Value> extends Omit<NotedOptions, "autoExtend"> {
  /** Reads the value from the store, even while others hold the lock. */
  readonly read: () => Promise<Value> | Value;
  /** Whether a value can still be used. Leave a margin for its use. */
  readonly isFresh: (value: Value) => boolean;
  /** Gets a new value for the current one. */
  readonly refresh: (current: Value, context: RefreshContext) => Promise<Value> | Value;
  /**
   * Stores a new value with its fence: true. If the store has a newer fence, or no such row: false. May be called again
   * with this value and fence.
   */
  readonly write: (fresh: Value, context: RefreshContext) => Promise<boolean> | boolean;
}

const { autoExtend: _extend, ...usual } = notedSchema;
const callable = typed("function");
const functions = { read: callable, isFresh: callable, refresh: callable, write: callable };
const schema: Schema<RefreshOptions<unknown>> = { ...usual, ...functions };
const hints = { required: Object.keys(functions), usual: "wait" };

/**
 * Returns a fresh value: the one in the store, without any Redis command, or else a new one. For OAuth tokens whose
 * refresh token is accepted once: one call refreshes, and all others, on any replica, return its result. If `write`
 * fails, it is called again for `ttl` ms. But if a process dies between the answer to `refresh` and `write`, the value
 * is lost.
 *
 * @param key the name of the refreshed thing, such as the account: 1 … 1 024 characters. Its plain lock is used
 * @throws RefreshedNotWrittenError when a new value may be stored nowhere. The error has it
 * @throws LockHeldError when another call has not written after `wait`
 * @throws QuorumError when too few endpoints answered. Nothing was refreshed
 * @throws LockLostError when the lock was lost before `refresh` was called
 * @throws errors of `read`, `isFresh` and `refresh`, or the reason of the signal, which counts until `refresh` is
 * called
 * @example
 * const { access_token } = await refreshOnce(redlock, `oauth:${account}`, {
 *   read: () => tokensOf(account),
 *   isFresh: ({ expires_at }) => expires_at > Date.now() + 60_000,
 *   refresh: ({ refresh_token }, { signal }) => exchange(refresh_token, signal),
 *   // UPDATE tokens SET …, fence = :fence WHERE account = :account AND fence < :fence
 *   write: async (fresh, { fence }) => (await store(account, fresh, fence)) === 1,
 * });
 */
export async function refreshOnce<Value>(
  redlock: LockClient,
  key: string,
  options: RefreshOptions<Value>,
): Promise<Value> {
  checkCall("refreshOnce(redlock, key, { read, isFresh, refresh, write })", { redlock, key, options });
  checkName("key", key);
  checkSyncOptions("refreshOnce", options as RefreshOptions<unknown>, schema, hints);
  const { read, isFresh, refresh, write, signal, deadline, note, ...lockOptions } = options;
  const settings = settingsOf(redlock, lockOptions, { fencing: true, autoExtend: true });
  return new Refresh(settings, key, options).run();
}

interface Found<Value> {
  readonly value: Value;
  readonly isFresh: boolean;
}

class Refresh<Value> {
  readonly #settings: Settings;
  readonly #key: string;
  readonly #options: RefreshOptions<Value>;

  constructor(settings: Settings, key: string, options: RefreshOptions<Value>) {
    this.#settings = settings;
    this.#key = key;
    this.#options = options;
  }

  async run(): Promise<Value> {
    let stored = await this.#read();
    if (stored.isFresh) return stored.value;
    const isOver = async () => {
      stored = await this.#read();
      return stored.isFresh;
    };
    const lock = await acquireLooking(this.#settings, this.#key, this.#options, { isOver });
    if (!lock) return stored.value;
    try {
      return await this.#refresh(lock);
    } finally {
      await lock[Symbol.asyncDispose]();
    }
  }

  async #read(): Promise<Found<Value>> {
    const value = await this.#options.read();
    // A promise would always count as true.
    return { value, isFresh: checkType("the result of isFresh", this.#options.isFresh(value), "boolean") };
  }

  async #refresh(lock: Lock): Promise<Value> {
    const { signal, refresh } = this.#options;
    const { runtime, maxHold } = this.#settings;
    const current = await this.#read();
    if (current.isFresh) return current.value;
    for (const ended of [signal, lock.signal]) if (ended?.aborted) throw ended.reason;
    const fence = lock.fence!;
    const tooLong = new LockLostError([this.#key], `maxHold ${maxHold} ms${secondsHint(maxHold)}`);
    let fresh: Value;
    try {
      fresh = await within(runtime, maxHold, tooLong, (limit) =>
        refresh(current.value, { fence, signal: limit }),
      );
    } catch (error) {
      // An earlier holder that had lost its lock may have refreshed it meanwhile.
      const other = await this.#read().catch(() => undefined);
      if (other?.isFresh) return other.value;
      throw error;
    }
    // `refresh` may forget to return it.
    if (fresh === undefined || fresh === null) {
      throw wrongType("the result of refresh", fresh, "the new value");
    }
    return this.#save(fresh, fence);
  }

  /** For the ttl at most. */
  async #save(fresh: Value, fence: number): Promise<Value> {
    const { runtime, ttl, backoff } = this.#settings;
    const isNotWritten = (cause?: unknown): never => {
      throw new RefreshedNotWrittenError(this.#key, fresh, cause);
    };
    const written = await retry<unknown>({ runtime, backoff, wait: ttl }, {}, async () => {
      try {
        return { value: await this.#write(fresh, fence) };
      } catch (cause) {
        return { next: "pause", end: () => isNotWritten(cause) };
      }
    });
    if (written === true) return fresh;
    if (written !== false) {
      const expected = "true where it has stored the value, or false where not, for example rowCount === 1";
      return isNotWritten(wrongType("the result of write", written, expected));
    }
    const stored = await this.#read().catch(isNotWritten);
    return stored.isFresh ? stored.value : isNotWritten();
  }

  /** A late write is right, too, because of the fence. */
  #write(value: Value, fence: number): Promise<unknown> {
    const { runtime, ttl } = this.#settings;
    const late = new Error(`write took more than ${ttl / 2} ms`);
    return within(runtime, ttl / 2, late, async (signal) => {
      const result = await unlessAborted(
        Promise.resolve(this.#options.write(value, { fence, signal })),
        signal,
      );
      if (signal.aborted) throw late;
      return result;
    });
  }
}

async function within<Result>(
  runtime: Settings["runtime"],
  ms: number,
  reason: Error,
  run: (signal: AbortSignal) => Promise<Result> | Result,
): Promise<Result> {
  const controller = new AbortController();
  const cancel = runtime.timer(Math.min(ms, maxTimerDelay), () => controller.abort(reason));
  try {
    return await run(controller.signal);
  } finally {
    cancel();
  }
}
