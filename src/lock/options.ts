import {
  abortSignal,
  checkName,
  checkNumber,
  checkOptions,
  checkText,
  checkType,
  milliseconds,
  number,
  type Schema,
  typed,
  wrongType,
} from "../check/check.ts";
import type { Backoff } from "../quorum/backoff.ts";
import type { RoundContext } from "../quorum/round.ts";
import { Turns } from "../quorum/turns.ts";
import { maxTimerDelay, type Runtime, systemRuntime, type WaitUntil } from "../runtime/runtime.ts";
import { OwnHolds } from "./contention.ts";
import { type EventHook, emit, type RedlockEvent } from "./events.ts";
import type { WakeUp } from "./wake-up.ts";

export type { Backoff, BackoffBounds } from "../quorum/backoff.ts";

/** Options that you can set on the client and override in each call. `undefined` leaves the default in place. */
export interface LockOptions {
  /** How long Redis keeps the lock, in ms: an integer from 10 to 2 147 483 647. Default 10 000 (10 seconds). */
  readonly ttl?: number | undefined;
  /** How long `acquire` waits for a held lock, in ms. 0: one round. Default 5 000 (5 seconds). */
  readonly wait?: number | undefined;
  /** Longest time for one HTTP request, in ms, at least 1. Default: 1 000 or a third of the ttl, if that is less. */
  readonly timeout?: number | undefined;
  /** Share of the ttl that is subtracted for clock drift, 0 … 0.5. Default 0.01. */
  readonly driftFactor?: number | undefined;
  /** Pause between two rounds: bounds in ms, or a function. Default 25 … 2 000 ms. */
  readonly backoff?: Backoff | undefined;
  /** Draws a fencing token, refuses late requests, and reports when a held lock expires. Default false. */
  readonly fencing?: boolean | undefined;
  /** The beginning of every key, without braces. Default `redlock`. */
  readonly prefix?: string | undefined;
  /**
   * Keeps late requests alive, for example the Worker's `ctx`. Default: none. Calls then wait for late requests, half as long
   * again as for the quorum.
   */
  readonly waitUntil?: WaitUntil | undefined;
  /** Extends the lock at half of its ttl until it is released. Default false. `using`: true. */
  readonly autoExtend?: boolean | undefined;
  /** Longest time that auto-extension holds it, in ms: a stuck handler must not. Default 300 000 (5 minutes). */
  readonly maxHold?: number | undefined;
  /**
   * Wakes up waiters when their lock is released, instead of letting them poll: `pubSub` of `redlock-edge/wake-up`.
   * Holders and waiters both need it. Default: none.
   */
  readonly wakeUp?: WakeUp | undefined;
  /** Called with every event. Its errors are ignored. Default: none. */
  readonly onEvent?: EventHook<RedlockEvent> | undefined;
}

/** What belongs to one call only. */
export interface AcquireOptions extends LockOptions {
  /** Ends the waiting at once, and the call rejects with its reason. The locks that it acquired are still rolled back. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Wall-clock time in ms since 1970 at which the platform stops the code. Neither the waiting nor the lock's validity
   * goes beyond it. A time that has passed is a RangeError.
   */
  readonly deadline?: number | undefined;
  /**
   * Who locks, and why, for those who find it locked: 1 … 255 characters, stored with the lock. See
   * `LockHeldError.holder` and `inspect`. No secret, but not for strangers: do not answer a request with it. Default:
   * none.
   */
  readonly note?: string | undefined;
}

/** {@link AcquireOptions}, and what only `using` has. */
export interface UsingOptions extends AcquireOptions {
  /**
   * Whether the routine runs without a lock if too many endpoints fail for a quorum. It then gets `undefined` in place of the
   * lock, and the event `unguarded` reports it. If there is no `onEvent`, a line on the console does. A lock that is held is
   * never ignored. Default false: the call throws the `QuorumError`.
   */
  readonly failOpen?: boolean | undefined;
}

/** The schema of {@link LockOptions}. */
export const lockSchema: Schema<LockOptions> = {
  ttl: milliseconds(10, maxTimerDelay, 100),
  wait: number(0, Infinity, "ms"),
  timeout: number(1, maxTimerDelay, "ms"),
  driftFactor: number(0, 0.5),
  backoff: checkBackoff,
  fencing: typed("boolean"),
  prefix: checkPrefix,
  waitUntil: checkWaitUntil,
  autoExtend: typed("boolean"),
  maxHold: number(0, Infinity, "ms"),
  wakeUp: checkWakeUp,
  onEvent: typed("function"),
};

/** The schema of what {@link AcquireOptions} adds. */
export const callSchema: Schema<Pick<AcquireOptions, "signal" | "deadline">> = {
  signal: abortSignal,
  deadline: (name, value) => checkNumber(`${name} (ms since 1970)`, value, 0, Infinity),
};

const acquireSchema: Schema<AcquireOptions> = { ...lockSchema, ...callSchema, note: checkText };
/** The schema of {@link UsingOptions}. */
export const usingSchema: Schema<UsingOptions> = { ...acquireSchema, failOpen: typed("boolean") };

/** Where options belong that somebody gives elsewhere. */
const elsewhere = {
  endpoints: "new Redlock()",
  runtime: "new Redlock()",
  signal: "acquire()",
  token: "ReentrantLock, as owner",
  deadline: "acquire()",
  note: "acquire()",
  failOpen: "using()",
};

/**
 * Checks the options of a client.
 *
 * @throws TypeError | RangeError when they are not an object, or one is unknown, of something else or wrong
 */
export function checkLockOptions<Options extends LockOptions>(options: Options): Options {
  return checkOptions<LockOptions>("a lock", options, lockSchema, { usual: "ttl", elsewhere }) as Options;
}

/** Checks the options of one acquire. `schema`: the options of `using` have more. */
export function checkAcquireOptions(
  options: UsingOptions,
  schema: Schema<AcquireOptions> = acquireSchema,
): UsingOptions {
  checkOptions<AcquireOptions>("a lock", options, schema, { usual: "ttl", elsewhere });
  const { ttl = Infinity, timeout = 0 } = options;
  if (timeout > ttl) throw new RangeError(`timeout must be at most the ttl, got ${timeout} and ${ttl} ms`);
  return options;
}

/** Checks the options of a call that does not wait. */
export function checkTryOptions<Options extends LockOptions>(
  options: Options,
): Options & { readonly wait: 0 } {
  if (options.wait)
    throw new RangeError("a call that only tries does not wait: leave wait out, or call acquire");
  return { ...options, wait: 0 };
}

/** The options that have no default value. */
type Optional = Pick<LockOptions, "waitUntil" | "wakeUp" | "onEvent">;

type Filled = {
  readonly [Name in keyof Omit<LockOptions, keyof Optional>]-?: NonNullable<LockOptions[Name]>;
};

/** {@link LockOptions} with every default filled in, and what rounds need. */
export interface Settings extends RoundContext, Filled, Required<Omit<Optional, "waitUntil">> {
  readonly turns: Turns;
  readonly ownHolds: OwnHolds;
  readonly waitUntil: WaitUntil | undefined;
}

/** Merges layers of options: later layers win, except where they have `undefined`. */
export function mergeOptions<Options extends object>(...layers: (Options | undefined)[]): Options {
  const given: Record<string, unknown> = {};
  for (const layer of layers) {
    if (layer !== undefined) checkType("options", layer, "object");
    for (const [name, value] of Object.entries(layer ?? {})) if (value !== undefined) given[name] = value;
  }
  return given as Options;
}

/** What all calls of a client share. */
export interface ClientParts extends Pick<RoundContext, "endpoints"> {
  /** Default: the platform's. */
  readonly runtime?: Runtime | undefined;
  /** Default: a new one. */
  readonly turns?: Turns;
  /** Default: none yet. */
  readonly ownHolds?: OwnHolds;
}

/**
 * Merges the options of a call, each checked, and fills in the defaults.
 *
 * @throws TypeError | RangeError naming the option that is wrong
 */
export function resolveSettings(
  { endpoints, runtime = systemRuntime, turns = new Turns(), ownHolds = new OwnHolds() }: ClientParts,
  ...layers: (LockOptions | undefined)[]
): Settings {
  const given = mergeOptions(...layers);
  const { ttl = 10_000, timeout = Math.min(1_000, ttl / 3), onEvent } = given;
  return {
    ttl,
    wait: 5_000,
    driftFactor: 0.01,
    backoff: {},
    fencing: false,
    prefix: "redlock",
    autoExtend: false,
    maxHold: 300_000,
    waitUntil: undefined,
    wakeUp: undefined,
    onEvent: undefined,
    ...(given as object),
    // A default of the client may be longer than the ttl of this call.
    timeout: Math.min(timeout, ttl),
    endpoints,
    runtime,
    turns,
    ownHolds,
    onFailure: (error) => emit(onEvent, { type: "endpointError", endpoint: error.endpoint, error }),
    onRequest: onEvent && ((request) => emit(onEvent, { type: "request", ...request })),
  };
}

function checkBackoff(name: string, backoff: Backoff): void {
  if (typeof backoff === "function") return;
  // Null is refused: as a bound it would count as 0, and rounds would follow each other without a pause.
  const { min = 1 } = checkType(name, backoff, "object");
  checkOptions(name, backoff, {
    min: (_, value) => checkNumber("backoff.min (ms)", value, 1, Infinity),
    max: (_, value) => checkNumber("backoff.max (ms)", value, min, Infinity),
  });
}

/** Text without braces: the prefix and the kind end at the first brace of a key. */
export function checkPrefix(name: string, prefix: string): void {
  if (/[{}]/.test(checkText(name, prefix, Infinity))) {
    throw new RangeError(`prefix must have no braces, got "${prefix}"`);
  }
}

/** One check for every option that keeps late requests alive. */
export function checkWaitUntil(name: string, waitUntil: WaitUntil): void {
  if (typeof waitUntil === "function" || typeof Object(waitUntil).waitUntil === "function") return;
  throw wrongType(name, waitUntil, "a function, or the platform's context");
}

function checkWakeUp(name: string, wakeUp: WakeUp): void {
  if (!Object(wakeUp).listen) throw wrongType(name, wakeUp, "the pubSub that redlock-edge/wake-up exports");
}

/**
 * ms until a deadline.
 *
 * @throws RangeError when it has passed: a lock could not be used any more
 */
export function timeUntil(deadline: number, runtime: Pick<Runtime, "now">): number {
  const left = deadline - runtime.now();
  if (left > 0) return left;
  // As Lambda's remaining time less a reserve, it has passed when the function begins.
  const hint = left > -60_000 ? "give the function a longer timeout" : "it is a time: Date.now() + 5_000";
  throw new RangeError(`deadline was ${Math.ceil(-left)} ms ago; ${hint}`);
}

/**
 * One or several resources as a list, each once, in the order given.
 *
 * @throws TypeError | RangeError when a name or their number is wrong
 */
export function checkResources(resource: string | readonly string[], option = "resource"): string[] {
  const resources = [...new Set(Array.isArray(resource) ? resource : [resource])] as string[];
  for (const name of resources) checkName(option, name);
  checkNumber(`the number of ${option}s`, resources.length, 1, 100);
  return resources;
}
