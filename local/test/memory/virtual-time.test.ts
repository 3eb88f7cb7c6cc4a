import { expect, test } from "vitest";
import { VirtualTime, virtualRedlock } from "../../src/memory/index.ts";

test("timers fire in their order, each after what the one before has resolved", async () => {
  const time = new VirtualTime();
  const seen: string[] = [];
  const note = (what: string) => () => void seen.push(`${what} at ${time.elapsed}`);
  time.timer(20, note("b"));
  time.timer(Number.NaN, note("at once"));
  time.timer(10, () => void Promise.resolve().then(() => time.timer(0, note("a"))));
  time.timer(20, note("c"));
  time.timer(15, note("cancelled"))();
  time.timer(31, note("later"));
  await time.advance(30);
  expect(seen).toEqual(["at once at 0", "a at 10", "b at 20", "c at 20"]);
  expect([time.elapsed, time.pending, time.now()]).toEqual([30, 1, 1_700_000_000_030]);
});

test("steps from one timer to the next", async () => {
  const time = new VirtualTime();
  const woken = time.sleep(1_000).then(() => time.sleep(500));
  expect([await time.advanceToNext(), time.elapsed]).toEqual([true, 1_000]);
  expect([await time.advanceToNext(499), time.elapsed]).toEqual([false, 1_000]);
  expect([await time.advanceToNext(), time.elapsed]).toEqual([true, 1_500]);
  await woken;
});

test("passes until a promise has settled, also one that a thread computes", async () => {
  const time = new VirtualTime({ start: 0 });
  const hash = () => crypto.subtle.digest("SHA-256", new Uint8Array(1_000_000));
  const work = time.sleep(3_600_000).then(hash);
  expect((await time.settle(work, 3_600_000)).byteLength).toBe(32);
  expect(time.now()).toBe(3_600_000);
  await expect(time.settle(time.sleep(10).then(() => Promise.reject(new Error("no"))))).rejects.toThrow("no");
});

test("an endless loop of timers ends the test", async () => {
  const time = new VirtualTime();
  const again = () => void time.timer(0, again);
  again();
  await expect(time.advance(1)).rejects.toThrow(/on and on at 0 ms/);
});

test("its clocks can be set, and stand still", async () => {
  const time = new VirtualTime();
  await time.advance(100);
  time.frozen = true;
  time.wallOffset = -5_000;
  await time.advance(100);
  expect([time.monotonic(), time.now()]).toEqual([100, 1_700_000_000_000 - 4_800]);
  time.frozen = false;
  await time.advance(1.5);
  expect([time.monotonic(), time.now()]).toEqual([101.5, 1_700_000_000_000 - 4_799]);
});

test("is shared by a client and its endpoints", async () => {
  const { redlock, time, endpoints } = virtualRedlock({ ttl: 10_000, start: 0 });
  expect([...endpoints.map(({ name }) => name), time.now()]).toEqual([
    ...["endpoint-1", "endpoint-2", "endpoint-3"],
    0,
  ]);
  const lock = await redlock.acquire("invoice:42");
  await time.advance(9_000);
  expect(await redlock.tryAcquire("invoice:42")).toBe(null);
  await time.advance(1_100);
  expect(lock.remaining()).toBeLessThanOrEqual(0);
  expect(await redlock.tryAcquire("invoice:42")).not.toBe(null);
  const token = async (seed: number) => (await virtualRedlock({ count: 1, seed }).redlock.acquire("a")).token;
  expect(await token(7)).toBe(await token(7));
  expect(await token(7)).not.toBe(await token(8));
  expect(() => virtualRedlock({ count: 0 })).toThrow(RangeError);
  expect(() => virtualRedlock({ ttk: 1 } as object)).toThrow(/has no option "ttk"/);
});

test.each(["1h", Number.NaN, -1, undefined])("is not advanced by %s", async (ms) => {
  const time = new VirtualTime();
  await expect(time.advance(ms as number)).rejects.toThrow(`3_600_000 for an hour, not ${ms}`);
  expect(time.elapsed).toBe(0);
});
