import { onAbort } from "./abort.ts";
import { toHex } from "./bytes.ts";

/** Clocks, timers and randomness, which a simulator can replace. */
export interface Runtime {
  /** Wall clock: ms since 1970. May step in either direction. */
  now(): number;
  /** Monotonic clock in ms. May stand still while the platform freezes the process. */
  monotonic(): number;
  /**
   * Calls `callback` once after `ms`. The returned function cancels it. `keepsAlive` false: the process may end before.
   * Default true.
   */
  timer(ms: number, callback: () => void, keepsAlive?: boolean): () => void;
  /** A number in [0, 1), for jitter. */
  random(): number;
  /** Fills `bytes` from a cryptographic source. */
  randomBytes(bytes: Uint8Array): void;
}

/** In ms: 2^31 − 1, about 24 days. A longer timer fires at once. */
export const maxTimerDelay = 2_147_483_647;

/** The platform's own clocks and randomness. */
export const systemRuntime: Runtime = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  timer(ms, callback, keepsAlive = true) {
    // Fake timers may come or go meanwhile.
    const cancel = clearTimeout;
    const id = setTimeout(callback, ms);
    // Node and Bun have it.
    if (!keepsAlive) Object(id).unref?.();
    return () => cancel(id);
  },
  random: () => Math.random(),
  randomBytes: (bytes) => {
    crypto.getRandomValues(bytes as Uint8Array<ArrayBuffer>);
  },
};

/**
 * Whether calls may wait for each other's requests and timers. On Workers, and on edge platforms made like them, these
 * end with the invocation that has opened them.
 */
export function sharesRequests(): boolean {
  const { navigator, EdgeRuntime } = globalThis as {
    navigator?: { userAgent?: string };
    EdgeRuntime?: unknown;
  };
  return navigator?.userAgent !== "Cloudflare-Workers" && EdgeRuntime === undefined;
}

/** ms, because a clock may show whole ms only. */
const rounding = 2;

/** Shared, because each reading by any part of the library shortens the time between two readings. */
const clocks = new WeakMap<Runtime, () => number>();

/**
 * Errs on the safe side: of the wall clock and the monotonic clock it believes the one that advanced more. The wall
 * clock may be set back, and the monotonic clock stands still while a Lambda is frozen. If one happens after the other,
 * both totals are too small, so the clocks are compared at every reading.
 *
 * Assumption: between two readings at least one of the clocks goes on. Every call of the library reads them, and a
 * signal in use reads them once a second.
 */
export function stopwatch(runtime: Runtime): () => number {
  const now = clocks.get(runtime) ?? steadyClock(runtime);
  clocks.set(runtime, now);
  const start = now();
  return () => now() - start;
}

/** Never goes back. Of each step it misses at most 3 ms, which could be rounding. */
function steadyClock(runtime: Runtime): () => number {
  let wall = runtime.now();
  let monotonic = runtime.monotonic();
  let before = 0;
  let latest = 0;
  return () => {
    const wallStep = runtime.now() - wall;
    const step = runtime.monotonic() - monotonic;
    latest = Math.max(latest, before + Math.max(wallStep, step));
    const ahead = Math.round(wallStep - step);
    // The wall clock was set, the process was frozen, or fake timers have replaced the clocks, so both are read anew. A
    // wall clock that falls behind counts even within the rounding, or as much would be missing from the next freeze.
    if (ahead < 0 || ahead > rounding || step < 0) {
      wall += wallStep;
      monotonic += step;
      before = latest;
    }
    return latest;
  };
}

/** Resolves early if `signal` aborts. The caller checks the reason. */
export function sleep(runtime: Runtime, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const done = () => {
      cancel();
      ignoreAbort?.();
      resolve();
    };
    const cancel = runtime.timer(ms, done);
    const ignoreAbort = signal && onAbort(signal, done);
  });
}

/** `work` must not reject. */
export function settledWithin(runtime: Runtime, ms: number, work: Promise<unknown>): Promise<void> {
  return new Promise((resolve) => {
    // A `wait` may be endless.
    const cancel = runtime.timer(Math.min(ms, maxTimerDelay), resolve);
    void work.then(() => {
      cancel();
      resolve();
    });
  });
}

export const tokenLength = 33;

/** Begins with a letter, so that no client in between parses it as JSON or a number. */
export function randomToken(runtime: Runtime): string {
  const bytes = new Uint8Array(16);
  runtime.randomBytes(bytes);
  return `t${toHex(bytes)}`;
}

/** Keeps work alive after the response was sent: a function, or the platform's context that has it. */
export type WaitUntil =
  | ((promise: Promise<unknown>) => void)
  | {
      /** Lets the platform wait for the promise. */
      waitUntil(promise: Promise<unknown>): void;
    };

/**
 * A failure must not end the process as an unhandled rejection.
 *
 * @returns false: the caller has to wait for it
 */
export function keepAlive(
  { waitUntil }: { readonly waitUntil?: WaitUntil | undefined },
  work: Promise<unknown>,
): boolean {
  if (!waitUntil) return false;
  const ignore = (): void => undefined;
  const kept = work.then(ignore, ignore);
  try {
    // A platform's context refuses to be called unbound.
    const returned: unknown = typeof waitUntil === "function" ? waitUntil(kept) : waitUntil.waitUntil(kept);
    Promise.resolve(returned).catch(ignore);
    return true;
  } catch {
    // The context has ended, or cannot be called like this.
    return false;
  }
}

/** A time such as `2023-07-19T14:56:51.634Z` in ms since 1970, or NaN. It reads no clock. */
export const parseTime = (text: string): number => Date.parse(text);

export const formatTime = (time: number): string => new Date(time).toISOString();
