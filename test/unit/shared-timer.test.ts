import { afterEach, expect, test, vi } from "vitest";
import { sharedTimer } from "../../src/shared-timer.ts";
import { steppingRuntime } from "../support/stepping-runtime.ts";

afterEach(() => {
  vi.unstubAllGlobals();
});

/** When each of these timers fires, in ms, and how many timers the runtime has for them. */
async function firedAt(delays: readonly number[], every = 1) {
  const runtime = steppingRuntime();
  const times: number[] = [];
  for (const ms of delays) {
    sharedTimer(runtime, ms, () => times.push(runtime.elapsed));
    await runtime.advance(every);
  }
  const { pending } = runtime;
  await runtime.advance(2 * Math.max(...delays));
  return { times, pending };
}

test("those that are due at about the same time share a timer, which is never late, and early by a sixteenth at most", async () => {
  const { times, pending } = await firedAt(Array(100).fill(5_000));
  expect(pending).toBe(1);
  expect(times).toEqual(Array(100).fill(4_864));
});

test("those that are due at other times do not", async () => {
  const { times, pending } = await firedAt([5_000, 5_400, 1_000, 20_000]);
  expect(pending).toBe(4);
  expect(times).toEqual([992, 4_864, 5_376, 19_456]);
});

test("a short one is exact", async () => {
  expect(await firedAt([511, 511])).toEqual({ times: [511, 512], pending: 2 });
});

test("one that is cancelled does not fire, and with the last one the timer goes", async () => {
  const runtime = steppingRuntime();
  const fired: string[] = [];
  const [first, second] = ["first", "second"].map((name) =>
    sharedTimer(runtime, 5_000, () => void fired.push(name)),
  );
  first!();
  first!();
  expect(runtime.pending).toBe(1);
  second!();
  expect(runtime.pending).toBe(0);
  sharedTimer(runtime, 5_000, () => void fired.push("third"));
  second!();
  await runtime.advance(5_000);
  expect(fired).toEqual(["third"]);
});

test("one that throws stops no other, and its error surfaces", async () => {
  const runtime = steppingRuntime();
  const fired: string[] = [];
  for (const name of ["first", "second", "third"]) {
    sharedTimer(runtime, 5_000, () => {
      fired.push(name);
      if (name !== "third") throw new Error(name);
    });
  }
  await expect(runtime.advance(4_864)).rejects.toThrow("first");
  expect(fired).toEqual(["first", "second", "third"]);
  await expect(runtime.advance(1)).rejects.toThrow("second");
});

test("one that keeps the process alive shares none with one that does not", () => {
  const kept: (boolean | undefined)[] = [];
  const runtime = Object.assign(steppingRuntime(), {
    timer: (_ms: number, _callback: () => void, keepsAlive?: boolean) => {
      kept.push(keepsAlive);
      return () => undefined;
    },
  });
  for (const keepsAlive of [true, false, true, false])
    sharedTimer(runtime, 5_000, () => undefined, keepsAlive);
  expect(kept).toEqual([true, false]);
});

test("on Workers each has its own: a timer ends with the request that has set it", async () => {
  vi.stubGlobal("navigator", { userAgent: "Cloudflare-Workers" });
  expect(await firedAt([5_000, 5_000])).toEqual({ times: [5_000, 5_001], pending: 2 });
});
