import { expect, expectTypeOf, test } from "vitest";
import { memoryEndpoint } from "../../local/src/memory/index.ts";
import { type AcquireOptions, type FencedLock, type Lock, Redlock } from "../../src/index.ts";

test("the types of fences: a number with fencing: true, which may be missing otherwise", async () => {
  const redlock = new Redlock({ endpoints: [memoryEndpoint()] });
  const fenced = await redlock.acquire("a", { fencing: true });
  expectTypeOf(fenced).toEqualTypeOf<FencedLock>();
  expectTypeOf(fenced.fence).toEqualTypeOf<number>();
  const tried = await redlock.tryAcquire("b", { fencing: true, ttl: 5_000 });
  expectTypeOf(tried).toEqualTypeOf<FencedLock | null>();
  const fence = await redlock.using("c", { fencing: true }, (held) => held.fence);
  expectTypeOf(fence).toEqualTypeOf<number>();
  const lock = await redlock.acquire("e");
  expectTypeOf(lock).toEqualTypeOf<Lock>();
  expectTypeOf(lock.fence).toEqualTypeOf<number | undefined>();
  const options: AcquireOptions = { fencing: Math.random() < 2 };
  expectTypeOf(await redlock.acquire("f", options)).toEqualTypeOf<Lock>();
  expect([fenced.fence > 0, fence > 0, lock.fence]).toEqual([true, true, undefined]);
});
