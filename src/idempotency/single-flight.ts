import { abortSignal, checkNumber, checkOptions, type Schema, tellOfSeconds, typed } from "../check/check.ts";
import { isRedlockError } from "../errors/errors.ts";
import { checkCall, clientStateOf, type LockClient } from "../lock/client.ts";
import type { EventHook } from "../lock/events.ts";
import { stopwatch } from "../runtime/runtime.ts";
import { checkScope } from "./digest.ts";
import type { IdempotencyEvent } from "./events.ts";
import { Idempotency, idempotencySchema } from "./idempotency.ts";
import type { RunRecord } from "./record.ts";
import { type Codec, type JsonResult, json } from "./result.ts";

/** Options of {@link singleFlight}. */
export interface SingleFlightOptions<Value> {
  /**
   * How long a value is shared with later callers, in ms: 0 to 2 592 000 000 (30 days), or a function of the value. If
   * the function fails, the value is not shared. Callers that already wait share a value of any ttl.
   */
  readonly ttl: number | ((value: Value) => number);
  /** How long to wait for another caller's value, in ms. Default 10 000 (10 seconds). */
  readonly wait?: number | undefined;
  /** How long the others wait for a caller that died, in ms, at least 10. Default 10 000 (10 seconds). */
  readonly lease?: number | undefined;
  /** Separates keys of different origin. See `RunOptions`. Default: none. */
  readonly scope?: string | readonly string[];
  /**
   * If too many endpoints fail for a quorum, computes without protection, perhaps several times at once. Default false:
   * the call throws the `QuorumError`.
   */
  readonly failOpen?: boolean | undefined;
  /** Ends the waiting at once: the call rejects with its reason. */
  readonly signal?: AbortSignal | undefined;
  /** Called with the events of the call's runs. Its errors are ignored. Default: none. */
  readonly onEvent?: EventHook<IdempotencyEvent> | undefined;
}

const longestTtl = 30 * 86_400_000;

const { wait, lease, onEvent } = idempotencySchema;

const schema: Schema<SingleFlightOptions<unknown>> = {
  ttl(name, ttl: unknown) {
    if (typeof ttl === "function") return;
    tellOfSeconds(name, checkNumber(`${name} (ms)`, ttl as number, 0, longestTtl));
  },
  wait,
  lease,
  scope: checkScope,
  failOpen: typed("boolean"),
  signal: abortSignal,
  onEvent,
};

/** The ttl in ms, a space, and the value's JSON. */
function flightCodec<Value>(ttl: SingleFlightOptions<Value>["ttl"]): Codec<Value> {
  return {
    encode: (value) => `${typeof ttl === "number" ? ttl : ttlOf(ttl(value))} ${json.encode(value)}`,
    decode: (text) => json.decode(text.slice(text.indexOf(" ") + 1)),
  };
}

function ttlOf(ms: unknown): number {
  // An async `ttl` must not end the process by an unhandled rejection.
  if (ms instanceof Promise) ms.catch(() => undefined);
  // Not shown, because it may be a part of a token.
  if (typeof ms !== "number" || Number.isNaN(ms)) throw new TypeError("ttl must return a number of ms");
  return Math.min(Math.max(ms, 0), longestTtl);
}

/** The argument of `compute`. */
export interface FlightContext {
  /** Aborts when another caller may have taken over. */
  readonly signal: AbortSignal;
}

type Compute<Value> = (context: FlightContext) => Promise<Value> | Value;

/**
 * Computes a value once on all replicas, for example a token: one caller computes, and the others wait and share its
 * value until its ttl ends. It is not a lock: after a crash, or with `failOpen`, a second caller may compute while the
 * first one still does.
 *
 * Every caller gets the value as JSON returns it. A value that cannot be stored (more than about 1 MB, or not JSON) is
 * not shared, so the callers compute one after another.
 *
 * @throws what `compute` throws, to the caller that computed
 * @throws InProgressError when another caller is still computing after `wait`
 * @throws QuorumError when too few endpoints answered, unless `failOpen` is true
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
  checkCall("singleFlight(redlock, key, { ttl: 60_000 }, compute)", { redlock, key, options, compute });
  checkOptions<SingleFlightOptions<never>>("singleFlight", options as never, schema, { required: ["ttl"] });
  const { runtime } = clientStateOf(redlock).settings;
  const { ttl, lease = 10_000, wait = 10_000, failOpen, onEvent } = options;
  const { signal = new AbortController().signal } = options;
  const began = Math.floor(runtime.now());
  const elapsed = stopwatch(runtime);
  let thrown: { readonly error: unknown } | undefined;
  const fly = async (run: FlightContext) => {
    try {
      return await compute({ signal: run.signal });
    } catch (error) {
      thrown = { error };
      throw error;
    }
  };
  // A value that was computed while this call waited counts, whatever its ttl.
  const isStale = ({ at, result }: RunRecord) =>
    result === undefined || !(at >= began || at + Number.parseFloat(result) > runtime.now());
  const idempotency = new Idempotency(redlock, { lease, retention: longestTtl, onEvent });
  const rules = { kind: "flight", isStale, codec: flightCodec(ttl), signal } as const;
  const ofKey = { ...rules, ...("scope" in options && { scope: options.scope }) };
  for (;;) {
    try {
      const remaining = Math.max(0, wait - elapsed());
      return (await idempotency.run<Value>(key, { ...ofKey, failOpen, wait: remaining }, fly)).value;
    } catch (error) {
      // First, because `compute` may use this library and throw its errors.
      if (thrown) throw thrown.error;
      const code = isRedlockError(error) ? error.code : undefined;
      // Another caller took over meanwhile, and its value is newer.
      if (code !== "LEASE_LOST") throw error;
    }
  }
}
