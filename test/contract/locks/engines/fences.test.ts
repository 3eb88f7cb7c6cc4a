import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { keyOf } from "../../../../evidence/sim/field.ts";
import { inspect } from "../../../../src/inspect/index.ts";
import { type Local, newResource, openLocal } from "../../../support/local-endpoints.ts";
import { engines } from "../../../support/redis-servers.ts";

// The counters of fences as each engine keeps them.

const hour = 3_600_000;
const cases = [
  [engines[0]!, "redis-8.4"],
  ["embedded", "redis"],
  ["embedded", "upstash"],
] as const;

describe.each(cases)("fences, on %s in the %s dialect", (engine, dialect) => {
  let local: Local;
  beforeAll(async () => {
    local = await openLocal({ engine, dialect });
  });
  beforeEach(() => local.reset());
  afterAll(() => local.close());

  const setCounters = async (resource: string, value: number) => {
    for (const endpoint of local.endpoints) {
      await endpoint.execute(["SET", keyOf("fence", resource), value, "PX", hour]);
    }
  };

  test("strictly increase, survive the release, and outlive it by 24 hours", async () => {
    const resource = newResource();
    const redlock = local.redlock({ fencing: true });
    let before = Date.now() - 1;
    for (let count = 1; count <= 5; count += 1) {
      const lock = await redlock.acquire(resource);
      expect(lock.fence).toBeGreaterThan(before);
      expect(Number.isSafeInteger(lock.fence)).toBe(true);
      before = lock.fence!;
      expect(await lock.release()).toBe(true);
    }
    expect((await inspect(redlock, resource)).fence).toBe(before);
    const key = keyOf("fence", resource);
    const ttl = (await local.endpoints[0]!.execute(["PTTL", key])) as number;
    // At least 24 hours after the lock's end, and twice that so that extensions need not prolong it.
    expect(ttl).toBeGreaterThan(47 * hour);
    expect(ttl).toBeLessThanOrEqual(48 * hour + 1_000);
  });

  test("of large counters increase by exactly one", async () => {
    const resource = newResource();
    const large = 9_007_199_254_740_000;
    await setCounters(resource, large);
    const redlock = local.redlock({ fencing: true });
    for (let count = 1; count <= 3; count += 1) {
      const lock = await redlock.acquire(resource);
      expect(lock.fence).toBe(large + count);
      await lock.release();
    }
  });
});
