/** Clocks, timers and randomness, so that a test can replace them. A `Runtime` of redlock-edge will do. */
export interface Runtime {
  /** Wall clock: ms since 1970. */
  now(): number;
  /** Calls `callback` once after `ms`; the returned function cancels it. */
  timer(ms: number, callback: () => void): () => void;
  /** A number in [0, 1). */
  random(): number;
}

/** The platform's own. */
export const systemRuntime: Runtime = {
  now: () => Date.now(),
  timer(ms, callback) {
    const id = setTimeout(callback, ms);
    return () => clearTimeout(id);
  },
  random: () => Math.random(),
};
