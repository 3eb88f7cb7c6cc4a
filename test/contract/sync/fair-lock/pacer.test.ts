import { describe, expect, test } from "vitest";
import type { Backoff } from "../../../../src/index.ts";
import { queuePacer } from "../../../../src/sync/internal/queue-pacer.ts";
import { steppingRuntime } from "../../../support/stepping-runtime.ts";

// When a waiter of a fair lock sends its next request.

const longestTimer = 2_147_483_647;

/** The pauses after answers with so many tickets ahead, each request as soon as its pause is over. */
async function pausesFor(backoff: Backoff, answers: readonly (number | undefined)[]) {
  const runtime = steppingRuntime();
  const pacer = queuePacer(runtime, backoff);
  const pauses: number[] = [];
  for (const ahead of answers) {
    const longest = pacer.longest();
    const pause = pacer.pause(ahead);
    pauses.push(pause);
    // The ticket must outlive the pause.
    expect(pause).toBeLessThanOrEqual(longest);
    await runtime.advance(pause);
  }
  return { pauses, longest: pacer.longest() };
}

/** The pauses after answers at these times, in ms. */
async function pausesAt(backoff: Backoff, answers: readonly (readonly [at: number, ahead: number])[]) {
  const runtime = steppingRuntime();
  const pacer = queuePacer(runtime, backoff);
  const pauses: number[] = [];
  for (const [at, ahead] of answers) {
    await runtime.advance(at - runtime.monotonic());
    pauses.push(pacer.pause(ahead));
  }
  return pauses;
}

describe("the first in the queue", () => {
  test("pauses for a quarter of the time for which the holder has held it, at least the shortest pause", async () => {
    const { pauses, longest } = await pausesFor({}, [0, 0, 0, 0, 0, 0, 0, 0]);
    expect(pauses).toEqual([25, 25, 25, 25, 25, 31.25, 39.0625, 48.828125]);
    expect(longest).toBe(1.5 * 48.828125);
  });

  test("pauses for the longest pause at most, however long it waits", async () => {
    const { pauses } = await pausesFor({ min: 20, max: 30 }, [0, 0, 0, 0, 0, 0, 0, 0, 0]);
    expect(pauses).toEqual([20, 20, 20, 20, 20, 25, 30, 30, 30]);
  });

  test("pauses for a quarter of what the holders before it took on average", async () => {
    const pauses = await pausesAt({ min: 10, max: 10_000 }, [
      [0, 2],
      [400, 0],
      [430, 0],
      [470, 0],
      [530, 0],
      [600, 0],
    ]);
    // Two in 400 ms, in 430 … 600 ms; but at most 1.5 × the last pause.
    expect(pauses).toEqual([15, 22.5, 33.75, 50.625, 530 / 8, 600 / 8]);
  });
});

describe("a later one in the queue", () => {
  test("pauses for three quarters of the time that those ahead will need", async () => {
    expect((await pausesFor({ min: 100, max: 10_000 }, [1])).pauses).toEqual([100]);
    expect((await pausesFor({ min: 100, max: 10_000 }, [2])).pauses).toEqual([150]);
    expect((await pausesFor({ min: 100, max: 10_000 }, [8])).pauses).toEqual([600]);
    // The first holder took 600 ms, so that the other six will need 3 600.
    const { pauses } = await pausesFor({ min: 100, max: 10_000 }, [8, 6, 6]);
    expect(pauses).toEqual([600, 900, 1_350]);
  });

  test("pauses for one and a half of its last pause at most: its ticket expires then", async () => {
    const { pauses, longest } = await pausesFor({ min: 10, max: 1_000 }, [20, 20, 20, 20]);
    expect(pauses).toEqual([150, 225, 337.5, 506.25]);
    expect(longest).toBe(1.5 * 506.25);
  });

  test("pauses for the longest pause at most for each ticket ahead", async () => {
    const { pauses } = await pausesFor({ min: 10, max: 40 }, [3, 3, 3, 3, 3, 3, 3]);
    expect(pauses).toEqual([22.5, 33.75, 50.625, 75.9375, 113.90625, 120, 120]);
  });

  test("counts the present holder's time where it takes longer than those before", async () => {
    const pauses = await pausesAt({ min: 25, max: 10_000 }, [
      [0, 2],
      [50, 1],
      [450, 1],
      [550, 1],
    ]);
    // 0.75 × 2 × 25; 1.5 × that, because 0.75 × 50 is less; 0.75 × 450 and 0.75 × 550 are more than 1.5 × the last.
    expect(pauses).toEqual([37.5, 37.5, 56.25, 84.375]);
  });

  test("begins anew when more are ahead than before: earlier tickets have arrived later", async () => {
    const pauses = await pausesAt({ min: 20, max: 10_000 }, [
      [0, 1],
      [1_000, 4],
      [1_040, 3],
      [1_044, 2],
    ]);
    // Four are ahead, which is no holder that was served in 1 000 ms; then one in 40 ms, but at most 1.5 × 30; then two
    // in 44 ms.
    expect(pauses).toEqual([20, 30, 45, 33]);
  });
});

describe("where nothing is known", () => {
  test("it pauses like a plain lock, but never for longer than its ticket lives", async () => {
    // Half of the way from 25 ms to three times the last pause; but at most 1.5 times the pause before it.
    const { pauses, longest } = await pausesFor({}, [undefined, undefined, 0, undefined]);
    expect(pauses).toEqual([25, 50, 25, 37.5]);
    expect(longest).toBe(1.5 * 37.5);
  });

  test("the pauses grow, also those of the first in the queue", async () => {
    const { pauses } = await pausesFor({}, [0, ...new Array(12).fill(undefined)]);
    expect(pauses.slice(0, 4)).toEqual([25, 25, 37.5, 56.25]);
    expect(pauses.at(-1)).toBeGreaterThan(200);
  });

  test("a later answer of many ahead need not begin with short pauses", async () => {
    const { pauses } = await pausesFor({ min: 10, max: 1_000 }, [20, 20, undefined, 20]);
    expect(pauses).toEqual([150, 225, 10, 337.5]);
  });

  test.each<[string, Backoff, number]>([
    ["one second", {}, 1_000],
    ["forty times the shortest", { min: 5 }, 200],
    ["the longest", { min: 10, max: 50 }, 50],
    ["the longest, which is shorter than usual", { max: 7 }, 7],
    ["the shortest, which is longer than usual", { min: 5_000 }, 5_000],
    ["one second, if there is no longest", { max: Infinity }, 1_000],
    ["the longest of a timer", { min: 3_000_000_000 }, longestTimer],
  ])("the first pause is at most %s", async (_, backoff, longest) => {
    expect((await pausesFor(backoff, [])).longest).toBe(longest);
  });
});

test("bounds that are shorter than the usual ones", async () => {
  expect((await pausesFor({ max: 7 }, [0, 0])).pauses).toEqual([7, 7]);
  expect((await pausesFor({ min: 5_000 }, [0, 3])).pauses).toEqual([5_000, 7_500]);
  const { pauses, longest } = await pausesFor({ min: 2_000_000_000 }, [0]);
  expect([pauses, longest]).toEqual([[2_000_000_000], longestTimer]);
});

test("a function's pauses are used as they are, each known one request before", () => {
  const runtime = steppingRuntime();
  const pacer = queuePacer(runtime, (attempt) => attempt * 7);
  const seen = [undefined, 0, 9].map((ahead) => [pacer.longest(), pacer.pause(ahead)]);
  expect(seen).toEqual([
    [7, 7],
    [14, 14],
    [21, 21],
  ]);
});
