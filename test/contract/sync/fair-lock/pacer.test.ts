import { describe, expect, test } from "vitest";
import type { Backoff } from "../../../../src/index.ts";
import { queuePacer } from "../../../../src/sync/internal/queue-pacer.ts";
import { steppingRuntime } from "../../../support/stepping-runtime.ts";

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
