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

/**
 * Starts a clock that errs on the safe side: elapsed time is the larger of what the two clocks say. A wall
 * clock that is stepped back and a monotonic clock that stood still while a Lambda was frozen both make a
 * single clock report too little, and a holder believe too long.
 */
export function stopwatch(runtime: Runtime): () => number {
  const wall = runtime.now();
  const monotonic = runtime.monotonic();
  return () => Math.max(runtime.now() - wall, runtime.monotonic() - monotonic);
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
