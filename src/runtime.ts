/**
 * Clocks, timers and randomness. Everything that this package knows of time comes through here, so that a
 * simulator can stand in for it; in production nobody needs to pass one.
 */
export interface Runtime {
  /** Wall clock: ms since 1970. May step in either direction. */
  now(): number;
  /** Monotonic clock in ms. May stand still while the platform freezes the process. */
  monotonic(): number;
  /** Calls `callback` once after `ms`; the returned function cancels it. */
  timer(ms: number, callback: () => void): () => void;
  /** A number in [0, 1), for jitter. */
  random(): number;
  /** Fills `bytes` from a cryptographic source, for tokens. */
  randomBytes(bytes: Uint8Array): void;
}

/** The longest delay that a timer of every platform keeps, in ms: 2^31 − 1, about 24 days. A longer one fires at once. */
export const maxTimerDelay = 2_147_483_647;

/** The platform's own clocks and randomness. */
export const systemRuntime: Runtime = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  timer(ms, callback) {
    const id = setTimeout(callback, ms);
    return () => clearTimeout(id);
  },
  random: () => Math.random(),
  randomBytes: (bytes) => {
    // Narrowed to what newer type libraries ask for: it must not be shared memory.
    crypto.getRandomValues(bytes as Uint8Array<ArrayBuffer>);
  },
};

/** How far, in ms, the two clocks of a process may come apart only because they are rounded differently. */
const clockPrecision = 2;

/** What is known of the two clocks of a process since they were first read. */
interface Clocks {
  /** Wall clock less monotonic clock, at the last step of either. */
  distance: number;
  /** ms for which the monotonic clock has stood still in all, as the wall clock shows it. */
  stoodStill: number;
}

/** By runtime, not by stopwatch: every reading by any part of the library shortens the time between two looks. */
const known = new WeakMap<Runtime, Clocks>();

/**
 * ms by the monotonic clock, and for the times at which that stood still by the wall clock: of the steps between two
 * readings always the larger one.
 */
function steadyTime(runtime: Runtime): number {
  const monotonic = runtime.monotonic();
  const distance = runtime.now() - monotonic;
  let clocks = known.get(runtime);
  if (!clocks) {
    clocks = { distance, stoodStill: 0 };
    known.set(runtime, clocks);
  }
  const step = distance - clocks.distance;
  // A smaller one is rounding; counted, it would add up to as much again as the time that passes.
  if (Math.abs(step) > clockPrecision) {
    clocks.distance = distance;
    clocks.stoodStill += Math.max(0, step);
  }
  return monotonic + clocks.stoodStill;
}

/**
 * Starts a clock that errs on the safe side: of each step between two readings it counts what the faster of the two
 * clocks says. A wall clock that is set back and a monotonic clock that stands still while a Lambda is frozen both
 * make a single clock report too little, and a holder believe too long; so they do one after the other.
 *
 * It needs that between two readings at least one of the clocks goes on. It is read by every call of the library, and
 * once a second while somebody listens to a signal of something held.
 */
export function stopwatch(runtime: Runtime): () => number {
  const wall = runtime.now();
  const start = steadyTime(runtime);
  return () => Math.max(runtime.now() - wall, steadyTime(runtime) - start);
}

/** Resolves after `ms`, or as soon as `signal` aborts: waiting is over either way, the caller looks which. */
export function sleep(runtime: Runtime, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const done = () => {
      cancel();
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const cancel = runtime.timer(ms, done);
    signal?.addEventListener("abort", done, { once: true });
  });
}

/** The length of every {@link randomToken}. */
export const tokenLength = 33;

/** A random name of 128 bits that begins with a letter: no client in between takes it for JSON or a number. */
export function randomToken(runtime: Runtime): string {
  const bytes = new Uint8Array(16);
  runtime.randomBytes(bytes);
  let token = "t";
  for (const byte of bytes) token += (byte + 256).toString(16).slice(1);
  return token;
}
