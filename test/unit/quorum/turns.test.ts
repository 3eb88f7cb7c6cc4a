import { describe, expect, test } from "vitest";
import { VirtualTime } from "../../../local/src/memory/index.ts";
import { Turns } from "../../../src/quorum/turns.ts";

// When calls begin, and how many at once. There are 100 turns at first: test/unit/endpoints/room.test.ts.

/** `count` claims that wait for 1 000 ms, what has begun, and the function that ends each. */
function rig(count: number, ms = 1_000) {
  const turns = new Turns();
  const runtime = new VirtualTime();
  const begun: number[] = [];
  const ends: (() => void)[] = [];
  const controllers = Array.from({ length: count }, () => new AbortController());
  const turn = { runtime, ms, timeout: 1_000 };
  const work = (index: number) => () => {
    begun.push(index);
    return new Promise<number>((resolve) => {
      ends[index] = () => resolve(index);
    });
  };
  const claims = controllers.map(({ signal }, index) => turns.claim({ ...turn, signal }, work(index)));
  return { turns, turn, runtime, begun, ends, controllers, claims, work };
}

const numbers = (count: number) => Array.from({ length: count }, (_, index) => index);

describe("claims", () => {
  test("make room when the work of others fails", async () => {
    const { turns, turn, runtime, begun } = rig(100);
    const failing = turns.release({ ...turn, ms: 0 }, () => Promise.reject(new Error("down")));
    await expect(failing).rejects.toThrow("down");
    void turns.claim(turn, async () => void begun.push(-1));
    await runtime.advance(0);
    expect(begun).toHaveLength(101);
  });

  test.each([
    ["when their time is over", 1_000, 1_000],
    ["when they may not wait", 0, 0],
    ["when they may wait for longer than a timer", 2 ** 40, 2_147_483_647],
  ])("are never begun %s", async (_, ms, over) => {
    const { runtime, begun, claims, ends } = rig(101, ms);
    await runtime.advance(over);
    expect(await claims[100]).toBeUndefined();
    ends[0]!();
    await runtime.advance(0);
    expect(begun).toHaveLength(100);
    expect(runtime.pending).toBe(0);
  });

  test("are never begun when their signal aborts", async () => {
    const { runtime, begun, claims, controllers } = rig(101);
    controllers[100]!.abort();
    expect(await claims[100]).toBeUndefined();
    expect(begun).toHaveLength(100);
    expect(runtime.pending).toBe(0);
  });

  test.each([
    ["become more again by answers that take as long as usual", 674, 18],
    ["stay as few while answers take longer", 700, 9],
  ])("are ten at once after many were not answered in time, and %s", async (_, took, more) => {
    const { runtime, begun, ends } = rig(1_000, 10_000);
    await runtime.advance(450);
    // The fastest one.
    ends[0]!();
    await runtime.advance(550);
    for (const index of numbers(100).slice(1)) ends[index]!();
    await runtime.advance(0);
    expect(begun).toEqual(numbers(110));
    await runtime.advance(took);
    for (const index of numbers(110).slice(101)) ends[index]!();
    await runtime.advance(0);
    expect(begun).toHaveLength(110 + more);
  });
});

test("a release begins in any case when its time is over", async () => {
  const { turns, turn, runtime, begun, work } = rig(100);
  void turns.release({ ...turn, ms: 500 }, work(-1));
  await runtime.advance(499);
  expect(begun).toHaveLength(100);
  await runtime.advance(1);
  expect(begun).toEqual([...numbers(100), -1]);
});
