import { Redlock, type RedlockOptions } from "redlock-edge";
import { checkInteger } from "../../../src/check/check.ts";
import { type MemoryEndpoint, memoryEndpoint } from "./memory-endpoint.ts";
import { VirtualTime } from "./virtual-time.ts";

/** Options of {@link virtualRedlock}: those of the client, and `count`, `seed` and `start`. */
export interface VirtualRedlockOptions extends Omit<RedlockOptions, "endpoints" | "runtime"> {
  /** Number of endpoints. Default 3. */
  readonly count?: number;
  /** The same seed draws the same random numbers and tokens. Default 1. */
  readonly seed?: number;
  /** What the wall clock shows at first, in ms since 1970. Default 1 700 000 000 000 (14 November 2023). */
  readonly start?: number;
}

/** A client and its endpoints, which share one time. */
export interface VirtualRedlock {
  readonly redlock: Redlock;
  readonly time: VirtualTime;
  /** `endpoint-1`, `endpoint-2`, … */
  readonly endpoints: readonly MemoryEndpoint[];
}

/**
 * A client for tests whose locks expire when the test says so: the client and its {@link memoryEndpoint}s share a
 * {@link VirtualTime}.
 *
 * @throws TypeError | RangeError for a wrong option
 * @example
 * const { redlock, time } = virtualRedlock();
 * const lock = await redlock.acquire("invoice:42", { ttl: 10_000 });
 * await time.advance(10_000);
 * expect(lock.remaining()).toBeLessThanOrEqual(0);
 */
export function virtualRedlock(options: VirtualRedlockOptions = {}): VirtualRedlock {
  const { count = 3, seed, start, ...ofClient } = options;
  checkInteger("count", count, 1, 64);
  const time = new VirtualTime({ seed, start });
  const endpoints = Array.from({ length: count }, (_, index) =>
    memoryEndpoint({ name: `endpoint-${index + 1}`, runtime: time }),
  );
  return { redlock: new Redlock({ ...ofClient, endpoints, runtime: time }), time, endpoints };
}
