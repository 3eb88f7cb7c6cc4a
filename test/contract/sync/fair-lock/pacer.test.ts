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

type Ahead = number | undefined;

describe("pauses, if each request follows at the end of the pause before it", () => {
  test.each<[what: string, Backoff, ahead: readonly Ahead[], pauses: readonly number[]]>([
    [
      "of the first: a quarter of the time for which the holder has held it, at least the shortest pause",
      {},
      [0, 0, 0, 0, 0, 0, 0, 0],
      [25, 25, 25, 25, 25, 31.25, 39.0625, 48.828125],
    ],
    [
      "of the first: the longest pause at most",
      { min: 20, max: 30 },
      [0, 0, 0, 0, 0, 0, 0, 0, 0],
      [20, 20, 20, 20, 20, 25, 30, 30, 30],
    ],
    ["of a later one: three quarters of the time that those ahead will need", { min: 100 }, [8], [600]],
    [
      "of a later one: longer where the first holder took longer",
      { min: 100, max: 10_000 },
      [8, 6, 6],
      [600, 900, 1_350],
    ],
    [
      "of a later one: one and a half of its last pause at most, because its ticket expires then",
      { min: 10, max: 1_000 },
      [20, 20, 20, 20],
      [150, 225, 337.5, 506.25],
    ],
    [
      "of a later one: the longest pause at most for each ticket ahead",
      { min: 10, max: 40 },
      [3, 3, 3, 3, 3, 3, 3],
      [22.5, 33.75, 50.625, 75.9375, 113.90625, 120, 120],
    ],
    // Half of the way from 25 ms to three times the last pause; but at most 1.5 times the pause before it.
    [
      "where nothing is known: those of a plain lock",
      {},
      [undefined, undefined, 0, undefined],
      [25, 50, 25, 37.5],
    ],
    ["with a function: its own", (attempt) => attempt * 7, [undefined, 0, 9], [7, 14, 21]],
  ])("%s", async (_, backoff, ahead, expected) => {
    const { pauses, longest } = await pausesFor(backoff, ahead);
    expect(pauses).toEqual(expected);
    if (typeof backoff === "object") expect(longest).toBeGreaterThanOrEqual(expected.at(-1)!);
  });
});

describe("pauses, if answers come at other times", () => {
  test.each<[what: string, Backoff, answers: [at: number, ahead: number][], pauses: readonly number[]]>([
    [
      // Two in 400 ms, in 430 … 600 ms; but at most 1.5 × the last pause.
      "of the first: a quarter of what the holders before it took on average",
      { min: 10, max: 10_000 },
      [
        [0, 2],
        [400, 0],
        [430, 0],
        [470, 0],
        [530, 0],
        [600, 0],
      ],
      [15, 22.5, 33.75, 50.625, 530 / 8, 600 / 8],
    ],
    [
      // 0.75 × 2 × 25; 1.5 × that, because 0.75 × 50 is less; 0.75 × 450 and 0.75 × 550 are more than 1.5 × the last.
      "of a later one: by the present holder's time where it takes longer than those before",
      { min: 25, max: 10_000 },
      [
        [0, 2],
        [50, 1],
        [450, 1],
        [550, 1],
      ],
      [37.5, 37.5, 56.25, 84.375],
    ],
    [
      // Four are ahead, which is no holder that was served in 1 000 ms; then one in 40 ms, but at most 1.5 × 30; then two
      // in 44 ms.
      "anew where more are ahead than before: earlier tickets have arrived later",
      { min: 20, max: 10_000 },
      [
        [0, 1],
        [1_000, 4],
        [1_040, 3],
        [1_044, 2],
      ],
      [20, 30, 45, 33],
    ],
  ])("%s", async (_, backoff, answers, expected) => {
    expect(await pausesAt(backoff, answers)).toEqual(expected);
  });
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
