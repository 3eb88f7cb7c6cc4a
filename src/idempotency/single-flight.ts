import { checkNames, checkNumber, checkScope, checkType } from "../check.ts";
import { isRedlockError } from "../errors.ts";
import { type EventHook, emit } from "../events.ts";
import { clientStateOf, type LockClient } from "../lock/options.ts";
import { type Runtime, runInBackground, stopwatch } from "../runtime.ts";
import { SharedFailureError } from "./errors.ts";
import type { IdempotencyEvent } from "./events.ts";
import { forgetKey, forgetRecords } from "./forget.ts";
import { Idempotency } from "./idempotency.ts";
import { jsonOf } from "./json.ts";
import { joinLocalFlight, type LocalFlight } from "./local-flights.ts";
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
  /**
   * For how many ms after its ttl a value is still returned, at once, while one of the callers computes a new one behind
   * them: from 0 to 2 592 000 000 (30 days). A failure of that computation is in the events only; the next caller computes
   * again. Its run has the key with ` (refresh)` behind it. On Workers and Lambda it needs the client's `waitUntil`.
   * Default 0.
   */
  readonly staleFor?: number | undefined;
  /** How long to wait for another caller's value, in ms. Default 10 000 (10 seconds). */
  readonly wait?: number | undefined;
  /** How long the others wait for a caller that died, in ms, at least 10. Default 10 000 (10 seconds). */
  readonly lease?: number | undefined;
  /** Separates keys of different origin; see `RunOptions`. Default: none. */
  readonly scope?: string | readonly string[] | undefined;
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

const names: Readonly<Record<keyof SingleFlightOptions<unknown>, 1>> = {
  ttl: 1,
  staleFor: 1,
  wait: 1,
  lease: 1,
  scope: 1,
  onFailure: 1,
  onOutage: 1,
  signal: 1,
  onEvent: 1,
};

/** The longest ttl, in ms: 30 days. */
const longestTtl = 30 * 86_400_000;

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
 * would lose a part of it) is shared only with those that wait for it in this process: others compute, one after another.
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
  checkOptions(options);
  checkType("compute", compute, "function");
  return new Call(redlock, key, options, compute).run();
}

function checkOptions<Value>(options: SingleFlightOptions<Value>): void {
  checkNames("singleFlight", options, names);
  const { ttl, staleFor = 0, scope, wait = 0, onFailure = "retry", onOutage = "throw", onEvent } = options;
  if (typeof ttl !== "function") checkNumber("ttl (ms)", ttl, 0, longestTtl);
  checkNumber("staleFor (ms)", staleFor, 0, longestTtl);
  checkNumber("wait (ms)", wait, 0, Infinity);
  if (scope !== undefined) checkScope(scope);
  if (onEvent) checkType("onEvent", onEvent, "function");
  if (onFailure !== "retry" && onFailure !== "share")
    throw new RangeError('onFailure must be "retry" or "share"');
  if (onOutage !== "throw" && onOutage !== "run") throw new RangeError('onOutage must be "throw" or "run"');
}

/** One call of {@link singleFlight}. */
class Call<Value> {
  readonly #idempotency: Idempotency;
  readonly #local: LocalFlight<Flight<Value>>;
  readonly #leave: () => void;
  readonly #redlock: LockClient;
  readonly #runtime: Runtime;
  readonly #key: string;
  readonly #options: SingleFlightOptions<Value>;
  readonly #lease: number;
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
    const { lease = 10_000, scope } = options;
    const { settings } = clientStateOf(redlock);
    const { runtime } = settings;
    const onEvent = options.onEvent && ((event: IdempotencyEvent) => this.#emit(event));
    this.#idempotency = new Idempotency(redlock, { lease, retention: longestTtl, onEvent });
    const { local, leave } = joinLocalFlight<Flight<Value>>(settings, [scope, key]);
    this.#local = local;
    this.#leave = leave;
    this.#redlock = redlock;
    this.#runtime = runtime;
    this.#key = key;
    this.#options = options;
    this.#lease = lease;
    this.#compute = compute;
    this.#began = runtime.now();
    this.#elapsed = stopwatch(runtime);
  }

  async run(): Promise<Value> {
    try {
      return await this.#run();
    } finally {
      this.#leave();
    }
  }

  async #run(): Promise<Value> {
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
        const isUnstored = code === "RESULT_UNAVAILABLE";
        const { computed, unstored } = this.#local;
        // Another process may compute already what could not be stored here.
        const shared = isUnstored ? computed : code === "IN_PROGRESS" ? unstored : undefined;
        if (shared && this.#isCurrent(shared)) return this.#valueOf(shared);
        // Another caller took over while this one computed: its value is the newer one.
        if (code !== "LEASE_LOST" && !isUnstored) throw error;
        this.#isStale = isUnstored;
      }
    }
  }

  /** Computes, or waits for another caller. Undefined: what is stored is too old. */
  async #join(): Promise<Flight<Value> | undefined> {
    const { scope, signal, wait = 10_000 } = this.#options;
    if (this.#isStale) await this.#forget();
    const flights = codec as Codec<Flight<Value>>;
    const remaining = Math.max(0, wait - this.#elapsed());
    const options = { scope, kind: "flight", signal, codec: flights, wait: remaining };
    const { status, value, unstored } = await this.#idempotency.run(this.#key, options, (run) =>
      this.#fly(run),
    );
    if (status === "executed") {
      if (!unstored) this.#local.computed = undefined;
      this.#local.unstored = unstored === "no-quorum" ? undefined : this.#local.computed;
      return value;
    }
    if (this.#isCurrent(value)) return value;
    this.#isStale = !this.#isUsable(value);
    if (this.#isStale) return undefined;
    this.#refreshBehind();
    return value;
  }

  /** Whether it may be returned once more while a new one is computed. */
  #isUsable({ until, failure }: Flight<Value>): boolean {
    const { staleFor = 0 } = this.#options;
    return failure === undefined && until + staleFor > this.#runtime.now();
  }

  /** Computes a new value behind the callers, who get the old one meanwhile. Of all replicas, one does. */
  #refreshBehind(): void {
    const local = this.#local;
    const now = this.#runtime.now();
    // A time and not a flag: a Worker may end its work in the background at any time.
    if (now < local.refreshingUntil) return;
    local.refreshingUntil = now + this.#lease;
    const { settings } = clientStateOf(this.#redlock);
    const { leave } = joinLocalFlight(settings, [this.#options.scope, this.#key]);
    const refreshed = this.#refresh().finally(() => {
      local.refreshingUntil = 0;
      leave();
    });
    runInBackground(
      settings,
      refreshed.catch(() => undefined),
    );
  }

  async #refresh(): Promise<void> {
    const { scope } = this.#options;
    const key = `${this.#key} (refresh)`;
    const own = { scope, kind: "flight" } as const;
    // A run of another key, so that the old value stays in its place until the new one is there.
    await this.#idempotency.run(key, { ...own, retention: this.#lease }, async ({ signal }) => {
      const value = await this.#compute({ signal });
      const options = { ...this.#options, staleFor: 0, signal: undefined };
      const call = new Call(this.#redlock, this.#key, options, () => value);
      call.#isStale = true;
      await call.run();
    });
    // Else the next value could not be refreshed before the lease has ended.
    await forgetKey(this.#idempotency, key, own);
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
    const flight = { at, until: at + (await this.#ttlOf(value)), value: asJson(value) };
    // Before it is stored: those that wait may learn sooner than this call that it could not be.
    this.#local.computed = flight;
    return flight;
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
    const { scope } = this.#options;
    const stays = (text: string) => this.#stays(text);
    await forgetRecords(this.#idempotency, this.#key, { scope, kind: "flight" }, stays).catch(
      (error: unknown) => {
        const code = isRedlockError(error) ? error.code : undefined;
        if (code === "IN_PROGRESS") return;
        // To compute, a quorum that has forgotten is enough. If what is stored comes back, this ends in the same error.
        // Stryker disable next-line ConditionalExpression: forgetting fails with no other error
        if (code !== "NO_QUORUM" || this.#isPartlyForgotten) throw error;
        this.#isPartlyForgotten = true;
      },
    );
  }

  #valueOf({ value, failure }: Flight<Value>): Value {
    if (failure !== undefined) throw new SharedFailureError(this.#key, failure);
    return value as Value;
  }
}
