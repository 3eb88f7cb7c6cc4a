import {
  checkInteger,
  checkName,
  checkOptions,
  checkText,
  checkThis,
  checkType,
  integer,
  later,
  milliseconds,
  oneOf,
  type Schema,
  typed,
} from "../check/check.ts";
import { checkCall, clientStateOf, type LockClient } from "../lock/client.ts";
import type { EventHook } from "../lock/events.ts";
import {
  type ClientParts,
  callSchema,
  checkResources,
  type LockOptions,
  lockSchema,
  mergeOptions,
  resolveSettings,
  type Settings,
} from "../lock/options.ts";
import type { Backoff } from "../quorum/backoff.ts";
import { keyOf } from "../redis/keys.ts";
import { maxTimerDelay, type WaitUntil } from "../runtime/runtime.ts";
import { checkScope, fingerprintOf, hashKey, type KeyKind } from "./digest.ts";
import type { IdempotencyEvent } from "./events.ts";
import { type Codec, type JsonResult, json } from "./result.ts";
import { type Handler, type LockedRunContext, type Outcome, run } from "./run.ts";
import type { RecordKeys, RunRequest } from "./run-request.ts";

/** Options of all runs, which each run can override. */
export interface IdempotencyOptions {
  /**
   * How long a run's claim outlives its process, in ms: an integer from 10 to 2 147 483 647. Renewed while the handler
   * runs. Default 30 000 (30 seconds).
   */
  readonly lease?: number | undefined;
  /** How long a result is kept, in ms: an integer from the lease to 2^45. Default 86 400 000 (24 hours). */
  readonly retention?: number | undefined;
  /** How long to wait for another run's result, or for the lock, in ms. 0: one round. Default 0. */
  readonly wait?: number | undefined;
  /** Longest time for which the lease is renewed, in ms, in case a handler is stuck. Default 300 000 (5 minutes). */
  readonly maxHold?: number | undefined;
  /** Longest time for one HTTP request, in ms, at least 1. Default: the client's, or 1 000. */
  readonly timeout?: number | undefined;
  /** Pause between two rounds: bounds in ms for jitter, or a function. Default: the client's, or 25 … 2 000 ms. */
  readonly backoff?: Backoff | undefined;
  /** Keeps late requests alive, for example the Worker's `ctx`. Default: the client's, or none. */
  readonly waitUntil?: WaitUntil | undefined;
  /**
   * How many runs of a key may begin and neither complete nor fail, for example because the process dies: an integer of
   * at least 1. Then the key is dead for the retention, or until it is forgotten. Costs one more command and request
   * per run. Default: runs are not counted.
   */
  readonly maxAttempts?: number | undefined;
  /**
   * The most bytes of a stored result, as a JSON string with about 120 bytes of the record: an integer from 1 000 to 4
   * 000 000. If it is larger, duplicates get a `ResultUnavailableError`. Default 1 000 000, which fits the smallest
   * limit of Upstash.
   */
  readonly maxResult?: number | undefined;
  /** Called with every event. Its errors are ignored. Default: none. */
  readonly onEvent?: EventHook<IdempotencyEvent> | undefined;
}

/** Options of one run. */
export interface RunOptions<Value> extends IdempotencyOptions {
  /**
   * Separates keys of different origin, for example tenant or provider: one name or several, none empty. `undefined` is
   * a TypeError, because a missing tenant would share the keys of all. Default: none.
   */
  readonly scope?: string | readonly string[];
  /**
   * Must be equal whenever the key is used again, for example the request's body. Only its hash is stored. Default:
   * none.
   */
  readonly fingerprint?: string | Uint8Array | undefined;
  /** How the result is stored. Default: JSON, or `undefined` as the whole result. */
  readonly codec?: Codec<Value> | undefined;
  /**
   * Locks these resources for the run, in one request with the key and for the same lease. The handler gets a fence. If
   * a lock is held, the call waits for `wait` at most. Default: none.
   */
  readonly lock?: string | readonly string[] | undefined;
  /** The lock's `note`: 1 … 255 characters. Only with `lock`. Default: none. */
  readonly note?: string | undefined;
  /**
   * If too many endpoints fail for a quorum, runs the handler without protection: perhaps several times at once,
   * without a stored result or a fence. The event `unguarded`, or else a line on the console, reports it. Default
   * false: the call throws the `QuorumError`.
   */
  readonly failOpen?: boolean | undefined;
  /** Ends the waiting at once: the call rejects with its reason. The handler has a signal of its own. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Wall-clock time in ms since 1970 at which the platform stops the code. Waiting ends by then, and the claim at most
   * two `timeout`s later, because the result is still to be stored. A time that has passed is a RangeError.
   */
  readonly deadline?: number | undefined;
}

/** {@link RunOptions} with a lock. */
export type LockedRunOptions<Value> = RunOptions<Value> & {
  readonly lock: string | readonly string[];
  readonly failOpen?: false | undefined;
};

type AnyRunOptions<Value> = RunOptions<Value> &
  Partial<Pick<RunRequest<Value>, "isStale">> & {
    readonly kind?: KeyKind;
    readonly handler?: string | undefined;
  };

const { maxHold, timeout, backoff, waitUntil } = lockSchema;

export const idempotencySchema: Schema<IdempotencyOptions> = {
  lease: milliseconds(10, maxTimerDelay),
  retention: milliseconds(10, 2 ** 45),
  wait: lockSchema.wait,
  maxHold,
  timeout,
  backoff,
  waitUntil,
  maxAttempts: integer(1, Number.MAX_SAFE_INTEGER),
  maxResult: integer(1_000, 4_000_000),
  onEvent: typed("function"),
};

const runSchema: Schema<AnyRunOptions<unknown>> = {
  ...idempotencySchema,
  ...callSchema,
  scope: checkScope,
  fingerprint: later,
  codec: checkCodec,
  lock: (name, lock) => checkResources(lock, name),
  note: checkText,
  failOpen: typed("boolean"),
  kind: oneOf("run", "http", "flight"),
  handler: later,
  isStale: typed("function"),
};

type ResolvedOptions = Pick<
  RunRequest<unknown>,
  "settings" | "retention" | "maxAttempts" | "maxResult" | "onEvent"
>;

/**
 * Runs a handler once per key: at least once across crashes, with one stored result per key as long as the store keeps
 * it. A handler that outlives its lease can never overwrite or free a newer run's record.
 *
 * @example
 * const idempotency = new Idempotency(redlock, { lease: 30_000, retention: 7 * 86_400_000 });
 * // The key names the work: under the event's id alone, other work would get this result.
 * const { status, value } = await idempotency.run(`fulfil:${event.id}`, { scope: "stripe" }, async ({ signal }) => {
 *   return await fulfil(event, { signal });
 * });
 */
export class Idempotency {
  readonly redlock: LockClient;
  readonly options: IdempotencyOptions;

  /** It sends nothing yet. */
  constructor(redlock: LockClient, options: IdempotencyOptions = {}) {
    checkOptions("Idempotency", options, idempotencySchema);
    this.redlock = redlock;
    this.options = options;
    this.#resolve(options);
  }

  /**
   * Runs `handler`, or returns the stored result if a run of `key` is complete. The key names the work and its subject:
   * with `order:7` for both, a mail would get the result of the charge.
   *
   * @throws InProgressError when another run is still running after `wait`
   * @throws LockHeldError when another holder still has the `lock` after `wait`
   * @throws FingerprintMismatchError when the key was used with another fingerprint
   * @throws QuorumError when too few endpoints answered to begin. The handler did not run
   * @throws LeaseLostError when the handler outlived its lease and another run took over
   * @throws DeadKeyError when `maxAttempts` runs did not end
   * @throws RecordCorruptError when the stored value is not a record, or cannot be decoded
   * @throws ResultUnavailableError when a run is complete, but its result could not be stored
   * @throws the handler's error. The key is then free again
   *
   * @example
   * const { value } = await idempotency.run("charge:order:7", { fingerprint: body }, () => charge(order));
   * await idempotency.run(`pay:${event.id}`, { lock: "invoice:42" }, async ({ fence, signal }) => {
   *   await db.run("UPDATE invoices SET paid = 1, fence = ?1 WHERE id = 42 AND fence < ?1", fence);
   * });
   */
  run<Value>(key: string, handler: Handler<Value> & JsonResult<Value>): Promise<Outcome<Value>>;
  run<Value>(
    key: string,
    options: LockedRunOptions<Value> & { readonly codec: Codec<Value> },
    handler: Handler<Value, LockedRunContext>,
  ): Promise<Outcome<Value>>;
  run<Value>(
    key: string,
    options: LockedRunOptions<Value>,
    handler: Handler<Value, LockedRunContext> & JsonResult<Value>,
  ): Promise<Outcome<Value>>;
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
    ...rest: [Handler<Value>] | [RunOptions<Value>, Handler<Value, LockedRunContext>]
  ): Promise<Outcome<Value>> {
    checkThis(this, "idempotency.run(…)");
    const [options, handler] = (rest.length > 1 ? rest : [{}, rest[0]]) as [
      AnyRunOptions<Value>,
      Handler<Value>,
    ];
    const places = rest.length > 1 ? "key, { fingerprint }, handler" : "key, handler";
    checkCall(`idempotency.run(${places})`, { key, options, handler });
    checkOptions<AnyRunOptions<unknown>>("run", options as AnyRunOptions<unknown>, runSchema);
    const { signal, deadline = Infinity, codec = json, note, failOpen = false, isStale } = options;
    const { settings, ...rules } = this.#resolve(options);
    const lock = options.lock === undefined ? undefined : checkResources(options.lock);
    if (note !== undefined && !lock) throw new TypeError("note needs lock: it is stored with the lock");
    if (options.kind !== "http") checkName("key", key, Infinity);
    // The handler may change the arguments.
    const keys = await recordKeysOf(settings, key, options);
    const fingerprint = await fingerprintOf(options.fingerprint);
    const own = { fingerprint, lock, note, codec, signal, deadline, failOpen, isStale };
    return run<Value>({ settings, ...keys, ...own, ...rules }, handler);
  }

  #resolve(options: IdempotencyOptions): ResolvedOptions {
    return resolveIdempotency(clientStateOf(this.redlock), this.options, options);
  }
}

/** @throws RangeError when the retention is shorter than the lease */
export function resolveIdempotency(
  client: {
    readonly settings: ClientParts;
    readonly options: LockOptions;
  },
  ...layers: IdempotencyOptions[]
): ResolvedOptions {
  const {
    lease,
    retention,
    wait = 0,
    maxAttempts = Infinity,
    maxResult = 1_000_000,
    onEvent,
    ...shared
  } = mergeOptions(...layers);
  const { timeout, backoff, maxHold, waitUntil } = shared;
  const ttl = lease ?? 30_000;
  const overrides = { ttl, wait, timeout, backoff, maxHold, waitUntil, autoExtend: true };
  const resolved = resolveSettings(client.settings, client.options, overrides);
  // Runs have events of their own, and their locks publish no release.
  const settings = { ...resolved, onEvent: undefined, wakeUp: undefined };
  return {
    settings,
    retention: checkInteger("retention (ms)", retention ?? 86_400_000, settings.ttl, 2 ** 45),
    maxAttempts,
    maxResult,
    onEvent,
  };
}

/** Before the handler's effect, which would be repeated. */
function checkCodec(name: string, codec: Codec<unknown>): void {
  checkType(`${name}.encode`, Object(codec).encode, "function");
  checkType(`${name}.decode`, Object(codec).decode, "function");
}

export async function recordKeysOf(
  { prefix }: Settings,
  key: string,
  options: {
    readonly scope?: string | readonly string[];
    readonly kind?: KeyKind | undefined;
    readonly handler?: string | undefined;
  },
): Promise<RecordKeys> {
  const { scope = [], kind = "run", handler } = options;
  if ("scope" in options) checkScope("scope", options.scope);
  if (handler !== undefined && kind !== "http") throw new TypeError('handler needs kind: "http"');
  checkText("key", key, Infinity);
  const hash = await hashKey(scope, key, kind, handler);
  return {
    key,
    name: keyOf(prefix, kind === "flight" ? kind : "idem", hash),
    counter: keyOf(prefix, "tries", hash),
  };
}
