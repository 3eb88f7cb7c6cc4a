import {
  abortSignal,
  checkNumber,
  checkOptions,
  checkScope,
  checkType,
  oneOf,
  type Schema,
} from "../check.ts";
import { isRedlockError } from "../errors.ts";
import { type EventHook, emit } from "../events.ts";
import { clientStateOf, type LockClient } from "../lock/client.ts";
import { type Runtime, stopwatch } from "../runtime.ts";
import { SharedFailureError } from "./errors.ts";
import type { IdempotencyEvent } from "./events.ts";
import { forgetRecords } from "./forget.ts";
import { Idempotency, idempotencySchema } from "./idempotency.ts";
import type { KeyOptions } from "./inspect.ts";
import { jsonOf } from "./json.ts";
import { parseRecord } from "./record.ts";
import { type Codec, encodeResult, type JsonResult, json } from "./result.ts";

/** Options of {@link singleFlight}. */
export interface SingleFlightOptions<Value> {
  /**
   * For how many ms a value is shared with callers that come later: from 0 to 2 592 000 000 (30 days). Or a function of
   * the value, for example of a token's `expires_in`: less than 0 counts as 0, and more than 30 days as 30 days. If it
   * throws, or returns no number, it counts as 0, and the error is in the event of the run. Callers that wait already
   * share the value in any case.
   */
  readonly ttl: number | ((value: Value) => number);
  /** How long to wait for another caller's value, in ms. Default 10 000 (10 seconds). */
  readonly wait?: number | undefined;
  /** How long the others wait for a caller that died, in ms, at least 10. Default 10 000 (10 seconds). */
  readonly lease?: number | undefined;
  /** Separates keys of different origin; see `RunOptions`. Default: none. */
  readonly scope?: string | readonly string[];
  /**
   * What those that wait get when the computation fails. `retry`: one of them computes. `share`: a
   * {@link SharedFailureError} with the message of the failure, which is stored. Default `retry`.
   */
  readonly onFailure?: "retry" | "share" | undefined;
  /**
   * What to do when no quorum of endpoints answers. `throw` the `QuorumError`, or `run` the computation without
   * protection: then several callers may compute at once. Default `throw`.
   */
  readonly onOutage?: "throw" | "run" | undefined;
  /** Ends the waiting at once; the call rejects with its reason. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Called with the events of the call's runs, as `onEvent` of `Idempotency`; a call may need several. `unstored` says
   * that a value could not be shared with other processes, and why. Its errors are ignored. Default: none.
   */
  readonly onEvent?: EventHook<IdempotencyEvent> | undefined;
}

/** The longest ttl, in ms: 30 days. */
const longestTtl = 30 * 86_400_000;

const { wait, lease, onEvent } = idempotencySchema;

const schema: Schema<SingleFlightOptions<unknown>> = {
  ttl(name, ttl: unknown) {
    if (typeof ttl !== "function") checkNumber(`${name} (ms)`, ttl as number, 0, longestTtl);
  },
  wait,
  lease,
  scope: checkScope,
  onFailure: oneOf("retry", "share"),
  onOutage: oneOf("throw", "run"),
  signal: abortSignal,
  onEvent,
};

/** What is stored. Times are ms since 1970, as far as the wall clocks agree. */
interface Flight<Value> {
  /** When the computation ended. */
  readonly at: number;
  /** Until when it is shared with callers that come later. */
  readonly until: number;
  readonly value?: Value;
  /** The message of a failure. */
  readonly failure?: string;
}

/** As JSON. The value alone can have a part that JSON would lose. */
const codec: Codec<Flight<unknown>> = {
  encode({ value, ...head }) {
    const text = JSON.stringify(head);
    return value === undefined ? text : `${text.slice(0, -1)},"value":${jsonOf(value)}}`;
  },
  decode(text) {
    const flight = JSON.parse(text);
    checkType("at", flight?.at, "number");
    checkType("until", flight.until, "number");
    return flight;
  },
};

/** The value as JSON returns it; itself where JSON would lose a part of it. */
function asJson<Value>(value: Value): Value {
  return encodeResult<Value>(json, value).value;
}

/** What `compute` gets. */
export interface FlightContext {
  /** Aborts when another caller may have taken over. */
  readonly signal: AbortSignal;
}

type Compute<Value> = (context: FlightContext) => Promise<Value> | Value;

/**
 * Computes a value once on all replicas: one caller computes, the others wait for its value and share it until its ttl
 * ends. For what is expensive or must not be done twice at the same time, such as the refresh of a token. It is not a lock:
 * after a crash, or with `onOutage: "run"`, a second caller may compute while the first one still does.
 *
 * Every caller gets the value as JSON returns it. A value that cannot be stored (it takes more than about 1 MB, or JSON
 * would lose a part of it) is not shared: the callers compute, one after another.
 *
 * @throws what `compute` throws, to the caller that computed
 * @throws SharedFailureError with `onFailure: "share"`, where the computation of another caller has failed
 * @throws InProgressError when another caller is still computing after `wait`
 * @throws QuorumError when too few endpoints answered, unless `onOutage` is `run`
 * @throws TypeError | RangeError when an option is wrong or unknown
 *
 * @example
 * const options = { ttl: ({ expires_in }: Token) => (expires_in - 60) * 1_000 };
 * const token = await singleFlight(redlock, "token:acme", options, ({ signal }) => refresh("acme", signal));
 */
export async function singleFlight<Value>(
  redlock: LockClient,
  key: string,
  options: SingleFlightOptions<Value>,
  compute: Compute<Value> & JsonResult<Value>,
): Promise<Value> {
  checkType("key", key, "string");
  checkOptions<SingleFlightOptions<never>>("singleFlight", options as never, schema, { required: ["ttl"] });
  checkType("compute", compute, "function");
  return new Call(redlock, key, options, compute).run();
}

/** One call of {@link singleFlight}. */
class Call<Value> {
  readonly #idempotency: Idempotency;
  readonly #runtime: Runtime;
  readonly #key: string;
  /** The key's kind, and its scope, if the caller has given one. */
  readonly #ofKey: KeyOptions;
  readonly #options: SingleFlightOptions<Value>;
  readonly #compute: Compute<Value>;
  readonly #began: number;
  readonly #elapsed: () => number;
  /** What this caller's computation has thrown. */
  #thrown: { readonly error: unknown } | undefined;
  /** Why the function `ttl` has returned no ttl. */
  #ttlError: unknown;
  /** Whether what is stored is to be forgotten, because it is too old or cannot be read. */
  #isStale = false;
  /** Whether too few endpoints have answered to forget it everywhere. */
  #isPartlyForgotten = false;

  constructor(
    redlock: LockClient,
    key: string,
    options: SingleFlightOptions<Value>,
    compute: Compute<Value>,
  ) {
    const { lease = 10_000 } = options;
    const { runtime } = clientStateOf(redlock).settings;
    const onEvent = options.onEvent && ((event: IdempotencyEvent) => this.#emit(event));
    this.#idempotency = new Idempotency(redlock, { lease, retention: longestTtl, onEvent });
    this.#runtime = runtime;
    this.#key = key;
    this.#ofKey = { kind: "flight", ...("scope" in options && { scope: options.scope }) };
    this.#options = options;
    this.#compute = compute;
    this.#began = runtime.now();
    this.#elapsed = stopwatch(runtime);
  }

  async run(): Promise<Value> {
    const { signal = new AbortController().signal, onOutage } = this.#options;
    for (;;) {
      try {
        const flight = await this.#join();
        if (flight) return this.#valueOf(flight);
      } catch (error) {
        // Also in place of the failure that the others share.
        if (this.#thrown) throw this.#thrown.error;
        const code = isRedlockError(error) ? error.code : undefined;
        if (code === "NO_QUORUM" && onOutage === "run") return asJson(await this.#compute({ signal }));
        // Another caller took over while this one computed: its value is the newer one.
        if (code !== "LEASE_LOST" && code !== "RESULT_UNAVAILABLE") throw error;
        this.#isStale = code === "RESULT_UNAVAILABLE";
      }
    }
  }

  /** Computes, or waits for another caller. Undefined: what is stored is too old. */
  async #join(): Promise<Flight<Value> | undefined> {
    const { signal, wait = 10_000 } = this.#options;
    if (this.#isStale) await this.#forget();
    const flights = codec as Codec<Flight<Value>>;
    const remaining = Math.max(0, wait - this.#elapsed());
    const options = { ...this.#ofKey, signal, codec: flights, wait: remaining };
    const { status, value } = await this.#idempotency.run(this.#key, options, (run) => this.#fly(run));
    this.#isStale = status === "replayed" && !this.#isCurrent(value);
    return this.#isStale ? undefined : value;
  }

  async #fly({ signal }: FlightContext): Promise<Flight<Value>> {
    let value: Value;
    try {
      value = await this.#compute({ signal });
    } catch (error) {
      this.#thrown = { error };
      if (this.#options.onFailure !== "share") throw error;
      const at = this.#runtime.now();
      return { at, until: at, failure: error instanceof Error ? error.message : String(error) };
    }
    const at = this.#runtime.now();
    return { at, until: at + (await this.#ttlOf(value)), value: asJson(value) };
  }

  /** The ttl of a value in ms. A mistake in the function `ttl` must not cost the value, which is computed. */
  async #ttlOf(value: Value): Promise<number> {
    const { ttl } = this.#options;
    if (typeof ttl === "number") return ttl;
    try {
      // One that is async by mistake must not end the process by an unhandled rejection.
      const ms: unknown = await ttl(value);
      // The message does not show it: it may be a part of the value.
      if (typeof ms !== "number" || Number.isNaN(ms)) throw new TypeError("ttl must return a number of ms");
      return Math.min(Math.max(ms, 0), longestTtl);
    } catch (error) {
      this.#ttlError = error;
      return 0;
    }
  }

  /** Adds the error of `ttl` to the event of the value's run. */
  #emit(event: IdempotencyEvent): void {
    const isOfValue = event.type === "executed" || event.type === "unstored";
    const error = event.error ?? this.#ttlError;
    emit(this.#options.onEvent, isOfValue && error !== undefined ? { ...event, error } : event);
  }

  #isCurrent({ at, until }: Pick<Flight<Value>, "at" | "until">): boolean {
    return until > this.#runtime.now() || at >= this.#began;
  }

  /** Whether a record is left: another caller may have replaced what this one found too old. */
  #stays(text: string): boolean {
    const record = parseRecord(text);
    if (record?.state === "pending") return true;
    if (record?.result === undefined) return false;
    try {
      return this.#isCurrent(codec.decode(record.result));
    } catch {
      // Damaged: nobody can have its value.
      return false;
    }
  }

  /** Forgets what is too old. Where another caller computes already, it is waited for. */
  async #forget(): Promise<void> {
    const stays = (text: string) => this.#stays(text);
    await forgetRecords(this.#idempotency, this.#key, this.#ofKey, stays).catch((error: unknown) => {
      const code = isRedlockError(error) ? error.code : undefined;
      if (code === "IN_PROGRESS") return;
      // To compute, a quorum that has forgotten is enough. If what is stored comes back, this ends in the same error.
      // Stryker disable next-line ConditionalExpression: forgetting fails with no other error
      if (code !== "NO_QUORUM" || this.#isPartlyForgotten) throw error;
      this.#isPartlyForgotten = true;
    });
  }

  #valueOf({ value, failure }: Flight<Value>): Value {
    if (failure !== undefined) throw new SharedFailureError(this.#key, failure);
    return value as Value;
  }
}
