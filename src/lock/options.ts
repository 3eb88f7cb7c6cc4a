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

/** Options of the client, which each call can override. `undefined` leaves the default in place. */
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
  /** Draws a fencing token and refuses late requests. Default false. */
  readonly fencing?: boolean | undefined;
  /** The beginning of every key, without braces. Default `redlock`. */
  readonly prefix?: string | undefined;
  /**
   * Keeps late requests alive, for example the Worker's `ctx`. Default: none, so calls wait for them, half as long
   * again as for the quorum.
   */
  readonly waitUntil?: WaitUntil | undefined;
  /** Extends the lock at half of its ttl until it is released. Default false. `using`: true. */
  readonly autoExtend?: boolean | undefined;
  /** Longest time that auto-extension holds it, in ms, in case a handler is stuck. Default 300 000 (5 minutes). */
  readonly maxHold?: number | undefined;
  /** `pubSub` of `redlock-edge/wake-up`, for holders and waiters. Default: waiters poll. */
  readonly wakeUp?: WakeUp | undefined;
  /** Called with every event. Its errors are ignored. Default: none. */
  readonly onEvent?: EventHook<RedlockEvent> | undefined;
}

/** Options of one call. */
export interface AcquireOptions extends LockOptions {
  /** Ends the waiting at once: the call rejects with its reason, and acquired locks are rolled back. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Wall-clock time in ms since 1970 at which the platform stops the code. Waiting and validity end by then. A time
   * that has passed is a RangeError.
   */
  readonly deadline?: number | undefined;
  /**
   * Who locks, and why: 1 … 255 characters, stored with the lock for `LockHeldError.holder` and `inspect`. Do not show
   * it to strangers. Default: none.
   */
  readonly note?: string | undefined;
}

/** Options of `using`. */
export interface UsingOptions extends AcquireOptions {
  /**
   * If too many endpoints fail for a quorum, runs the routine without a lock, and with `undefined` in its place. The
   * event `unguarded`, or else a line on the console, reports it. Default false: the call throws the `QuorumError`.
   */
  readonly failOpen?: boolean | undefined;
}

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

export const callSchema: Schema<Pick<AcquireOptions, "signal" | "deadline">> = {
  signal: abortSignal,
  deadline: (name, value) => checkNumber(`${name} (ms since 1970)`, value, 0, Infinity),
};

const acquireSchema: Schema<AcquireOptions> = { ...lockSchema, ...callSchema, note: checkText };
export const usingSchema: Schema<UsingOptions> = { ...acquireSchema, failOpen: typed("boolean") };

const elsewhere = {
  endpoints: "new Redlock()",
  runtime: "new Redlock()",
  signal: "acquire()",
  token: "ReentrantLock, as owner",
  deadline: "acquire()",
  note: "acquire()",
  failOpen: "using()",
};

export function checkLockOptions<Options extends LockOptions>(options: Options): Options {
  return checkOptions<LockOptions>("a lock", options, lockSchema, { usual: "ttl", elsewhere }) as Options;
}

export function checkAcquireOptions(
  options: UsingOptions,
  schema: Schema<AcquireOptions> = acquireSchema,
): UsingOptions {
  checkOptions<AcquireOptions>("a lock", options, schema, { usual: "ttl", elsewhere });
  const { ttl = Infinity, timeout = 0 } = options;
  if (timeout > ttl) throw new RangeError(`timeout must be at most the ttl, got ${timeout} and ${ttl} ms`);
  return options;
}

export function checkTryOptions<Options extends LockOptions>(
  options: Options,
): Options & { readonly wait: 0 } {
  if (options.wait)
    throw new RangeError("a call that only tries does not wait: leave wait out, or call acquire");
  return { ...options, wait: 0 };
}

type Optional = Pick<LockOptions, "waitUntil" | "wakeUp" | "onEvent">;

type Filled = {
  readonly [Name in keyof Omit<LockOptions, keyof Optional>]-?: NonNullable<LockOptions[Name]>;
};

export interface Settings extends RoundContext, Filled, Required<Omit<Optional, "waitUntil">> {
  readonly turns: Turns;
  readonly ownHolds: OwnHolds;
  readonly waitUntil: WaitUntil | undefined;
}

/** Later layers win, unless they have `undefined`. */
export function mergeOptions<Options extends object>(...layers: (Options | undefined)[]): Options {
  const given: Record<string, unknown> = {};
  for (const layer of layers) {
    if (layer !== undefined) checkType("options", layer, "object");
    for (const [name, value] of Object.entries(layer ?? {})) if (value !== undefined) given[name] = value;
  }
  return given as Options;
}

export interface ClientParts extends Pick<RoundContext, "endpoints"> {
  readonly runtime?: Runtime | undefined;
  readonly turns?: Turns;
  readonly ownHolds?: OwnHolds;
}

/** @throws TypeError | RangeError naming the option that is wrong */
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
    // The client's default may be longer.
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
  // Null would count as 0: no pause at all.
  const { min = 1 } = checkType(name, backoff, "object");
  checkOptions(name, backoff, {
    min: (_, value) => checkNumber("backoff.min (ms)", value, 1, Infinity),
    max: (_, value) => checkNumber("backoff.max (ms)", value, min, Infinity),
  });
}

/** The prefix and the kind end at the first brace of a key. */
export function checkPrefix(name: string, prefix: string): void {
  if (/[{}]/.test(checkText(name, prefix, Infinity))) {
    throw new RangeError(`prefix must have no braces, got "${prefix}"`);
  }
}

export function checkWaitUntil(name: string, waitUntil: WaitUntil): void {
  if (typeof waitUntil === "function" || typeof Object(waitUntil).waitUntil === "function") return;
  throw wrongType(name, waitUntil, "a function, or the platform's context");
}

function checkWakeUp(name: string, wakeUp: WakeUp): void {
  if (!Object(wakeUp).listen) throw wrongType(name, wakeUp, "the pubSub that redlock-edge/wake-up exports");
}

/** @throws RangeError when it has passed */
export function timeUntil(deadline: number, runtime: Pick<Runtime, "now">): number {
  const left = deadline - runtime.now();
  if (left > 0) return left;
  // Lambda's remaining time, less a reserve, may have passed when the function begins.
  const hint = left > -60_000 ? "give the function a longer timeout" : "it is a time: Date.now() + 5_000";
  throw new RangeError(`deadline was ${Math.ceil(-left)} ms ago; ${hint}`);
}

export function checkResources(resource: string | readonly string[], option = "resource"): string[] {
  const resources = [...new Set(Array.isArray(resource) ? resource : [resource])] as string[];
  for (const name of resources) checkName(option, name);
  checkNumber(`the number of ${option}s`, resources.length, 1, 100);
  return resources;
}
