import { checkInteger, checkNames, checkScope, checkType } from "../check.ts";
import type { EventHook } from "../events.ts";
import { checkAcquire, mergeOptions, resolveSettings, type Settings } from "../lock/options.ts";
import type { Backoff } from "../quorum/backoff.ts";
import { keyOf } from "../redis/keys.ts";
import type { Redlock } from "../redlock.ts";
import type { WaitUntil } from "../wait-until.ts";
import { fingerprintOf, hashKey, type KeyKind } from "./digest.ts";
import { type Codec, type JsonResult, json } from "./result.ts";
import { type IdempotencyEvent, type Outcome, type RunContext, runOnce } from "./run.ts";
import { forget, inspect, type KeyInspection, type RecordKeys } from "./store.ts";

/** What can be set for all runs and overridden in each. `undefined` leaves the default in place. */
export interface IdempotencyOptions {
  /** How long a run's claim outlives its process, in ms: an integer of at least 10. Renewed while it runs. Default 30 000. */
  readonly lease?: number | undefined;
  /** How long a result is kept, in ms: an integer of at least the lease. Default 86 400 000 (24 hours). */
  readonly retention?: number | undefined;
  /** How long to wait for another run's result, in ms; 0: not at all. Default 0. */
  readonly wait?: number | undefined;
  /** Bound on the renewal of the lease, in ms, so that a stuck handler frees its key. Default 300 000 (5 minutes). */
  readonly maxHold?: number | undefined;
  /** Limit of one HTTP request, in ms. Default: the client's, or 1 000. */
  readonly timeout?: number | undefined;
  /** Pause between two rounds. Default: the client's, or 25 … 1 000 ms. */
  readonly backoff?: Backoff | undefined;
  /** Hands over late requests, e.g. the Worker's `ctx`. Default: the client's, or none. */
  readonly waitUntil?: WaitUntil | undefined;
  /**
   * How many runs of a key may begin and neither complete nor fail, because their process died or their result
   * could not be stored; then the key is dead, for the retention after the last of them, or until it is
   * forgotten. An integer of at least 1. Costs one command and request more per run. Default: not counted.
   */
  readonly maxAttempts?: number | undefined;
  /**
   * The most bytes that a result may take in the request that stores it: the encoded result in UTF-8, as a string
   * of JSON, with the record's overhead of about 120. A larger one is not uploaded: the key is complete without
   * it, and duplicates get a `ResultUnavailableError`. An integer from 1 000 to 4 000 000, below what can be read
   * back. Default 1 000 000, which fits the smallest limit that Upstash sets for a request (1 MiB).
   */
  readonly maxResult?: number | undefined;
  /** Hears what happens. What it throws changes nothing. Default: none. */
  readonly onEvent?: EventHook<IdempotencyEvent> | undefined;
}

/** What belongs to one run. */
export interface RunOptions<Value> extends IdempotencyOptions {
  /** Separates keys of different origin: tenant, route, provider; one name or several, none empty. Default: none. */
  readonly scope?: string | readonly string[] | undefined;
  /** What must be the same whenever the key is used again, e.g. the request's body. Only its hash is stored. */
  readonly fingerprint?: string | Uint8Array | undefined;
  /**
   * How the result is stored. Default: JSON, in which `undefined` is allowed as a whole. What it cannot encode is
   * not stored: see {@link Outcome.unstored}.
   */
  readonly codec?: Codec<Value> | undefined;
  /** Ends the waiting at once; the call rejects with its reason. The handler has a signal of its own. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Wall-clock time in ms since 1970 at which the platform stops the code; bounds lease and waiting. The claim
   * ends one `timeout` later at the latest: time to store the result.
   */
  readonly deadline?: number | undefined;
}

/** `kind` is for the HTTP handlers of this package. */
type AnyRunOptions<Value> = RunOptions<Value> & { readonly kind?: KeyKind };

type Handler<Value> = (context: RunContext) => Promise<Value> | Value;

/** What {@link IdempotencyOptions} has; as a record, so that the compiler notices when one is missing. */
export const optionNames: Readonly<Record<keyof IdempotencyOptions, 1>> = {
  lease: 1,
  retention: 1,
  wait: 1,
  maxHold: 1,
  timeout: 1,
  backoff: 1,
  waitUntil: 1,
  maxAttempts: 1,
  maxResult: 1,
  onEvent: 1,
};
const runNames: Readonly<Record<keyof AnyRunOptions<unknown>, 1>> = {
  ...optionNames,
  scope: 1,
  fingerprint: 1,
  codec: 1,
  signal: 1,
  deadline: 1,
  kind: 1,
};
const keyNames: Readonly<Record<keyof KeyOptions, 1>> = { scope: 1, timeout: 1, kind: 1 };

/** What belongs to one look at a key, or one removal. */
export interface KeyOptions {
  /** As it was for the runs. Default: none. */
  readonly scope?: string | readonly string[] | undefined;
  /** `http`: a key of requests that `withIdempotency()` or `idempotent()` answered. Default `run`: one of `run()`. */
  readonly kind?: KeyKind | undefined;
  /** Limit of one HTTP request, in ms. Default: as for runs. */
  readonly timeout?: number | undefined;
}

/**
 * Runs a handler once per key: at least once across crashes, with one stored result per key as long as the
 * store remembers. A handler that outlives its lease can never overwrite or free what a newer run did.
 *
 * @example
 * const idempotency = new Idempotency(redlock, { lease: 30_000, retention: 7 * 86_400_000 });
 * const { status, value } = await idempotency.run(event.id, { scope: "stripe" }, async ({ signal }) => {
 *   return await fulfil(event, { signal });
 * });
 */
export class Idempotency {
  readonly #redlock: Redlock;
  readonly #options: IdempotencyOptions;

  /** @throws TypeError | RangeError when an option is wrong, or there is none of its name */
  constructor(redlock: Redlock, options: IdempotencyOptions = {}) {
    checkNames("Idempotency", options, optionNames);
    this.#redlock = redlock;
    this.#options = options;
    this.#settings(options);
  }

  /**
   * Runs `handler`, unless a run of `key` is complete: then its result is returned again.
   *
   * @throws InProgressError when another run is under way, and still is after `wait`
   * @throws FingerprintMismatchError when the key was used before with another fingerprint
   * @throws QuorumError when too few endpoints answered to begin; the handler did not run
   * @throws LeaseLostError when the handler ran longer than its lease and another run took over meanwhile
   * @throws DeadKeyError when `maxAttempts` runs began and neither completed nor failed
   * @throws RecordCorruptError when something else is stored under the key, or the codec cannot decode it
   * @throws ResultUnavailableError when a run is complete, but its result could not be stored
   * @throws what the handler throws; the key is free again then
   */
  run<Value>(key: string, handler: Handler<Value> & JsonResult<Value>): Promise<Outcome<Value>>;
  run<Value>(
    key: string,
    options: RunOptions<Value> & { readonly codec: Codec<Value> },
    handler: Handler<Value>,
  ): Promise<Outcome<Value>>;
  run<Value>(
    key: string,
    options: RunOptions<Value>,
    handler: Handler<Value> & JsonResult<Value>,
  ): Promise<Outcome<Value>>;
  async run<Value>(
    key: string,
    ...rest: [Handler<Value>] | [RunOptions<Value>, Handler<Value>]
  ): Promise<Outcome<Value>> {
    const handler = checkType("handler", rest.at(-1), "function") as Handler<Value>;
    const options: AnyRunOptions<Value> = rest.length > 1 ? (rest[0] as RunOptions<Value>) : {};
    checkNames("run", options, runNames);
    checkAcquire(options);
    const { signal, deadline = Infinity, codec = json } = options;
    // Known before the handler runs: afterwards it would have run for nothing, and again at the next try.
    checkType("codec.encode", Object(codec).encode, "function");
    checkType("codec.decode", Object(codec).decode, "function");
    const { settings, ...rules } = this.#settings(options);
    // Computed before the handler can touch what they are made of.
    const place = await recordKeysOf(settings, key, options);
    const fingerprint = await fingerprintOf(options.fingerprint);
    return runOnce({ settings, ...place, fingerprint, codec, signal, deadline, ...rules }, handler);
  }

  /**
   * Looks at a key without touching it.
   *
   * @throws QuorumError when too few endpoints answered to tell
   */
  async inspect(key: string, options: KeyOptions = {}): Promise<KeyInspection> {
    checkNames("inspect", options, keyNames);
    const { settings } = this.#settings({ timeout: options.timeout });
    return inspect(settings, await recordKeysOf(settings, key, options));
  }

  /**
   * Removes what is stored for a key, so that it can run again: its result, its count of attempts, and what is no
   * record. A run under way is left alone: its handler could not be told in time, and two would run.
   *
   * @returns whether there was anything to remove
   * @throws InProgressError when a run is under way
   * @throws QuorumError when an endpoint did not answer: a copy that it keeps would be found again. What the others
   * had is removed
   */
  async forget(key: string, options: KeyOptions = {}): Promise<boolean> {
    checkNames("forget", options, keyNames);
    const { settings } = this.#settings({ timeout: options.timeout });
    return forget(settings, await recordKeysOf(settings, key, options));
  }

  #settings(options: IdempotencyOptions): {
    settings: Settings;
    retention: number;
    maxAttempts: number;
    maxResult: number;
    onEvent: EventHook<IdempotencyEvent> | undefined;
  } {
    const {
      lease,
      retention,
      wait = 0,
      maxAttempts,
      maxResult = 1_000_000,
      onEvent,
      ...shared
    } = mergeOptions(this.#options, options);
    const { timeout, backoff, maxHold, waitUntil } = shared;
    const overrides = { ttl: lease ?? 30_000, wait, timeout, backoff, maxHold, waitUntil };
    // Records have no fence: how long the client's locks keep theirs does not bound the lease.
    const defaults = { ...this.#redlock.options, fenceRetention: undefined };
    const settings = resolveSettings(this.#redlock.settings, defaults, overrides);
    return {
      settings,
      retention: checkInteger("retention", retention ?? 86_400_000, settings.ttl, 2 ** 45),
      maxAttempts:
        maxAttempts === undefined
          ? Infinity
          : checkInteger("maxAttempts", maxAttempts, 1, Number.MAX_SAFE_INTEGER),
      maxResult: checkInteger("maxResult", maxResult, 1_000, 4_000_000),
      onEvent: onEvent && checkType("onEvent", onEvent, "function"),
    };
  }
}

/** Where a key is in Redis. */
async function recordKeysOf(
  { prefix }: Settings,
  key: string,
  { scope, kind = "run" }: Pick<KeyOptions, "scope" | "kind">,
): Promise<RecordKeys> {
  if (!checkType("key", key, "string")) throw new RangeError("key must not be empty");
  if (kind !== "run" && kind !== "http") throw new RangeError('kind must be "run" or "http"');
  const hash = await hashKey(scope === undefined ? [] : checkScope(scope), key, kind);
  return { key, name: keyOf(prefix, "idem", hash), counter: keyOf(prefix, "tries", hash) };
}
