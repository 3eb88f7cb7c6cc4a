import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Backoff, pauses } from "../../../src/quorum/backoff.ts";

const seed = Date.now() % 2 ** 31;
console.log(`backoff SEED=${seed}`);
const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
const longest = 2_147_483_647;

describe("pauses", () => {
  const series = (backoff: Backoff, draw = () => 0.999, length = 12) => {
    const next = pauses(backoff, { random: draw });
    return Array.from({ length }, () => next());
  };

  test("begin at 25 ms, and are at most 400 ms, later a tenth of the time waited, at most 2 s", () => {
    const drawn = series({}, undefined, 100);
    expect(drawn[0]).toBe(25);
    expect(drawn[1]).toBeCloseTo(75, 0);
    let waited = 0;
    for (const pause of drawn) {
      expect(pause).toBeLessThanOrEqual(Math.max(400, waited / 10));
      waited += pause;
    }
    expect(drawn.slice(5, 12)).toEqual(new Array(7).fill(400));
    expect(drawn.at(-1)).toBe(2_000);
    expect(series({}, () => 0)).toEqual(new Array(12).fill(25));
  });

  test("are at least as long as the previous round took, with room for jitter", () => {
    const pauseAfter = (took: number, drawn: number, backoff: Backoff = {}) =>
      pauses(backoff, { random: () => drawn })(took);
    expect([pauseAfter(8, 0), pauseAfter(8, 0.999)]).toEqual([25, 25]);
    expect([pauseAfter(100, 0), pauseAfter(100, 0.999)]).toEqual([100, expect.closeTo(300, 0)]);
    // A timeout, or a clock that was set.
    for (const took of [1_000, 3_600_000, Infinity]) {
      expect(pauseAfter(took, 0)).toBeCloseTo(2_000 / 3, -2);
      expect(pauseAfter(took, 0.999)).toBeGreaterThan(1_990);
    }
    expect([pauseAfter(300, 0, { max: 60 }), pauseAfter(300, 0.999, { max: 60 })]).toEqual([25, 60]);
    expect(pauseAfter(300, 0, { min: 500, max: 500 })).toBe(500);
    expect(pauseAfter(300, 0, () => 7)).toBe(7);
  });

  test.each([Infinity, 1e300, 2_147_483_648])("a function's %s is the longest pause of a timer", (answer) => {
    expect(series(() => answer, undefined, 1)).toEqual([longest]);
  });

  test("every allowed bound makes pauses that every timer supports, whatever is seen", () => {
    const bound = fc.option(fc.double({ min: 1, max: Infinity, noNaN: true }), { nil: undefined });
    fc.assert(
      fc.property(bound, bound, random, (min, max, drawn) => {
        fc.pre(min === undefined || max === undefined || min <= max);
        const backoff = { min, max };
        const next = pauses(backoff, { random: () => drawn });
        const seen = Array.from({ length: 40 }, (_, round) => next(1e9 * round));
        for (const pause of [...series(backoff, () => drawn, 40), ...seen]) {
          expect(pause >= 1 && pause <= longest).toBe(true);
        }
      }),
      { seed },
    );
  });
});
