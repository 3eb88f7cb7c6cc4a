import { describe, expect, expectTypeOf, test } from "vitest";
import { memoryEndpoint } from "../../local/src/memory/index.ts";
import { type AcquireOptions, type FencedLock, type Lock, Redlock } from "../../src/index.ts";

// The contract suite tests what Redlock does. These tests check its types.

const redlock = new Redlock({ endpoints: [memoryEndpoint()] });

describe("with fencing: true the fence is a number", () => {
  test("of acquire, tryAcquire and using", async () => {
    const lock = await redlock.acquire("a", { fencing: true });
    expectTypeOf(lock).toEqualTypeOf<FencedLock>();
    expectTypeOf(lock.fence).toEqualTypeOf<number>();
    expect(lock.fence).toBeGreaterThan(0);
    const tried = await redlock.tryAcquire("b", { fencing: true, ttl: 5_000 });
    expectTypeOf(tried).toEqualTypeOf<FencedLock | null>();
    const fence = await redlock.using("c", { fencing: true }, (held) => held.fence);
    expectTypeOf(fence).toEqualTypeOf<number>();
    expect(fence).toBeGreaterThan(0);
  });
});

test("without it the fence may be missing", async () => {
  const lock = await redlock.acquire("e");
  expectTypeOf(lock).toEqualTypeOf<Lock>();
  expectTypeOf(lock.fence).toEqualTypeOf<number | undefined>();
  expect(lock.fence).toBeUndefined();
  const options: AcquireOptions = { fencing: Math.random() < 2 };
  expectTypeOf(await redlock.acquire("f", options)).toEqualTypeOf<Lock>();
  expectTypeOf(await redlock.using("g", (held) => held.fence)).toEqualTypeOf<number | undefined>();
});
