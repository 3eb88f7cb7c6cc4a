import { vi } from "vitest";
import { LockLostError } from "../../src/errors.ts";
import { Validity } from "../../src/lock/validity.ts";
import { stopwatch } from "../../src/runtime.ts";
import { type SteppingRuntime, steppingRuntime } from "./stepping-runtime.ts";

/** ms of validity of a ttl of 1 000: without the drift, 1 % of the ttl and 2 ms. */
export const budget = 988;

/** A validity of 1 000 ms on a stepping runtime. */
export function makeValidity(options: { runtime?: SteppingRuntime; ttl?: number } = {}) {
  const { runtime = steppingRuntime(), ttl = 1_000 } = options;
  const onLost = vi.fn();
  const validity = new Validity({
    runtime,
    driftFactor: 0.01,
    elapsed: stopwatch(runtime),
    ttl,
    lostError: (why) => new LockLostError(["r"], why),
    onLost,
  });
  return { runtime, validity, onLost };
}
