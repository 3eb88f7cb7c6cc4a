import { checkNames, checkNumber, checkType } from "../check.ts";
import { isRedlockError } from "../errors.ts";
import { clientStateOf, type LockClient } from "../lock/options.ts";
import { type Runtime, stopwatch } from "../runtime.ts";
import { SharedFailureError } from "./errors.ts";
import { forgetRecords } from "./forget.ts";
import { Idempotency } from "./idempotency.ts";
import { parseRecord } from "./record.ts";
import { type Codec, type JsonResult, json } from "./result.ts";

/** Options of {@link singleFlight}. */
export interface SingleFlightOptions<Value> {
  /**
   * For how many ms a value is shared with callers that come later, or a function of the value, for example of a token's
   * `expires_in`: from 0 to 2 592 000 000 (30 days), and longer than that counts as 30 days. Callers that wait already
   * share it in any case.
   */
  readonly ttl: number | ((value: Value) => number);
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
}

const names: Readonly<Record<keyof SingleFlightOptions<unknown>, 1>> = {
  ttl: 1,
  wait: 1,
  lease: 1,
  scope: 1,
  onFailure: 1,
  onOutage: 1,
  signal: 1,
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

/** What `compute` gets. */
export interface FlightContext {
  /** Aborts when another caller may have taken over. */
  readonly signal: AbortSignal;
}

type Compute<Value> = (context: FlightContext) => Promise<Value> | Value;

/**
 * Computes a value once on all replicas: one caller computes, the others wait for its value and share it until its ttl
 * ends. For what is expensive or must not be done twice at the same time, such as the refresh of a token. It is no lock:
 * after a crash, or with `onOutage: "run"`, a second caller may compute while the first one still does.
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
  checkOptions(options);
  checkType("compute", compute, "function");
  return new Call(redlock, key, options, compute).run();
}

function checkOptions<Value>(options: SingleFlightOptions<Value>): void {
  checkNames("singleFlight", options, names);
  const { ttl, wait = 0, onFailure = "retry", onOutage = "throw" } = options;
  if (typeof ttl !== "function") checkNumber("ttl (ms)", ttl, 0, longestTtl);
  checkNumber("wait (ms)", wait, 0, Infinity);
  if (onFailure !== "retry" && onFailure !== "share")
    throw new RangeError('onFailure must be "retry" or "share"');
  if (onOutage !== "throw" && onOutage !== "run") throw new RangeError('onOutage must be "throw" or "run"');
}

/** One call of {@link singleFlight}. */
class Call<Value> {
  readonly #idempotency: Idempotency;
  readonly #runtime: Runtime;
  readonly #key: string;
  readonly #options: SingleFlightOptions<Value>;
  readonly #compute: Compute<Value>;
  readonly #began: number;
  readonly #elapsed: () => number;
  /** What this caller's computation has thrown. */
  #thrown: { readonly error: unknown } | undefined;
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
    this.#idempotency = new Idempotency(redlock, { lease, retention: longestTtl });
    this.#runtime = runtime;
    this.#key = key;
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
        if (code === "NO_QUORUM" && onOutage === "run") return this.#compute({ signal });
        // Another caller took over while this one computed: its value is the newer one.
        if (code !== "LEASE_LOST" && code !== "RESULT_UNAVAILABLE") throw error;
        this.#isStale = code === "RESULT_UNAVAILABLE";
      }
    }
  }

  /** Computes, or waits for another caller. Undefined: what is stored is too old. */
  async #join(): Promise<Flight<Value> | undefined> {
    const { scope, signal, wait = 10_000 } = this.#options;
    if (this.#isStale) await this.#forget();
    const codec: Codec<Flight<Value>> = json;
    const options = { scope, kind: "flight", signal, codec, wait: Math.max(0, wait - this.#elapsed()) };
    const { status, value } = await this.#idempotency.run(this.#key, options, (run) => this.#fly(run));
    if (status === "executed") return value;
    this.#isStale = !this.#isCurrent(value);
    return this.#isStale ? undefined : value;
  }

  async #fly({ signal }: FlightContext): Promise<Flight<Value>> {
    const { ttl, onFailure } = this.#options;
    try {
      const value = await this.#compute({ signal });
      const at = this.#runtime.now();
      return { at, until: at + (typeof ttl === "function" ? ttl(value) : ttl), value };
    } catch (error) {
      this.#thrown = { error };
      if (onFailure !== "share") throw error;
      const at = this.#runtime.now();
      return { at, until: at, failure: error instanceof Error ? error.message : String(error) };
    }
  }

  #isCurrent({ at, until }: Flight<Value>): boolean {
    return until > this.#runtime.now() || at >= this.#began;
  }

  /** Whether a record is left: another caller may have replaced what this one found too old. */
  #stays(text: string): boolean {
    const record = parseRecord(text);
    if (record?.state === "pending") return true;
    return record?.result !== undefined && this.#isCurrent(JSON.parse(record.result));
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
