import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Backoff, jitteredPause, pauses, turnoverPause } from "../../../src/quorum/backoff.ts";

const seed = Date.now() % 2 ** 31;
console.log(`backoff SEED=${seed}`);
const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
const longest = 2_147_483_647;

describe("jitteredPause", () => {
  test("lies between min and three times the previous pause, and within max", () => {
    const ms = fc.double({ min: 0, max: 1e6, noNaN: true });
    fc.assert(
      fc.property(ms, ms, ms, random, (previous, min, more, drawn) => {
        const max = min + more;
        const pause = jitteredPause(previous, min, max, drawn);
        expect(pause).toBeGreaterThanOrEqual(min);
        expect(pause).toBeLessThanOrEqual(max);
        expect(pause).toBeLessThanOrEqual(Math.max(min, 3 * previous) + 1e-9 * previous);
      }),
      { seed },
    );
  });
});

describe("turnoverPause", () => {
  test.each([
    ["the same holder from the start", 40, { isSame: true, changes: 0, watched: 90 }, 60],
    ["the same holder for longer than others", 400, { isSame: true, changes: 1, watched: 600 }, 600],
    ["another holder, the first change", 400, { isSame: false, changes: 1, watched: 600 }, 420],
    ["the same holder, after others took as long", 40, { isSame: true, changes: 1, watched: 600 }, 420],
    // 8 holders in 800 ms: 100 ms each, of which twice 0.7.
    ["another holder, after eight", 40, { isSame: false, changes: 8, watched: 800 }, 140],
  ])("%s", (_what, previous, turnover, expected) => {
    expect(turnoverPause(previous, turnover)).toBeCloseTo(expected, 6);
  });
});

describe("pauses", () => {
  const series = (backoff: Backoff, draw = () => 0.999, length = 12) => {
    const next = pauses(backoff, { random: draw });
    return Array.from({ length }, () => next());
  };

  test("begin at 25 ms and grow to at most a second", () => {
    const drawn = series({});
    expect(drawn[0]).toBe(25);
    expect(drawn[1]).toBeCloseTo(75, 0);
    expect(drawn.at(-1)).toBe(1_000);
    expect(series({}, () => 0)).toEqual(new Array(12).fill(25));
  });

  test.each([
    [{ min: 2_000 }, 2_000, 2_000],
    [{ max: 10 }, 10, 10],
    [{ min: 5, max: 5 }, 5, 5],
    [{ min: 1, max: 100 }, 1, 100],
  ])("keep within %j", (backoff, min, max) => {
    const drawn = series(backoff);
    expect(Math.min(...drawn)).toBe(min);
    expect(Math.max(...drawn)).toBe(max);
  });

  test("are at least as long as the previous round took, with room for jitter", () => {
    const pauseAfter = (took: number, drawn: number, backoff: Backoff = {}) =>
      pauses(backoff, { random: () => drawn })(took);
    expect([pauseAfter(8, 0), pauseAfter(8, 0.999)]).toEqual([25, 25]);
    expect([pauseAfter(100, 0), pauseAfter(100, 0.999)]).toEqual([100, expect.closeTo(300, 0)]);
    // A timeout, or a clock that was set.
    for (const took of [1_000, 3_600_000, Infinity]) {
      expect(pauseAfter(took, 0)).toBeCloseTo(1_000 / 3);
      expect(pauseAfter(took, 0.999)).toBe(1_000);
    }
    expect([pauseAfter(300, 0, { max: 60 }), pauseAfter(300, 0.999, { max: 60 })]).toEqual([25, 60]);
    expect(pauseAfter(300, 0, { min: 500, max: 500 })).toBe(500);
    expect(pauseAfter(300, 0, () => 7)).toBe(7);
  });

  describe("of a waiter that sees the holder", () => {
    /** The pauses after rounds of so many ms that have shown these holders, 100 ms apart. */
    const seeing = (
      holders: (number | undefined)[],
      { took = 2, drawn = 0.5, backoff = {} as Backoff } = {},
    ) => {
      const next = pauses(backoff, { random: () => drawn });
      return holders.map((holder, round) => next(took, { holder, waited: 100 * (round + 1) }));
    };
    const jitter = (holders: (number | undefined)[]) => seeing(holders.map(() => undefined));

    test("grow by half while the holder stays the same, up to the longest", () => {
      expect(seeing([1, 1, 1, 1])).toEqual([25, 37.5, 56.25, 84.375]);
      expect(seeing(new Array(20).fill(1)).at(-1)).toBe(1_000);
    });

    test("follow the time that a holder seems to take once holders change", () => {
      const [, second, third, fourth] = seeing([1, 2, 3, 3]);
      expect(second).toBeCloseTo(0.7 * 100);
      expect(third).toBeCloseTo(0.7 * (200 / 2) * Math.cbrt(2));
      expect(fourth).toBeCloseTo(1.5 * third!);
    });

    test("vary by half, within the bounds", () => {
      const pauseAfter = (drawn: number, backoff: Backoff = {}) => seeing([1, 2], { drawn, backoff })[1];
      expect(pauseAfter(0)).toBeCloseTo(35);
      expect(pauseAfter(1)).toBeCloseTo(105);
      expect([pauseAfter(0, { min: 80 }), pauseAfter(1, { max: 90 })]).toEqual([80, 90]);
      expect(seeing([1, 1], { drawn: 0 })[1]).toBe(25);
    });

    test("count a change that rounds without a holder hide", () => {
      const seen = seeing([1, undefined, 2]);
      expect(seen[1]).toBe(jitter([1, 1])[1]);
      expect(seen[2]).toBeCloseTo(0.7 * 200);
      // The same one again is none.
      expect(seeing([1, undefined, 1])[2]).toBeCloseTo(1.5 * seen[1]!);
    });

    test("are at least as long as the round, and those of one that does not see where rounds are long", () => {
      expect(seeing([1, 1], { took: 60, drawn: 0 })[1]).toBe(60);
      expect(seeing([1, 1], { took: 100, drawn: 0.9 })[1]).toBeCloseTo(1.5 * 280 * 1.4);
      const far = pauses({}, { random: () => 0.9 });
      expect(seeing([1, 2], { took: 101, drawn: 0.9 })).toEqual([far(101), far(101)]);
    });

    test("forget a first round that had to connect", () => {
      const next = pauses({}, { random: () => 0.5 });
      expect(next(200, { holder: undefined, waited: 200 })).toBe(400);
      expect(next(2, { holder: 1, waited: 602 })).toBe(50);
      expect(next(90, { holder: 2, waited: 702 })).toBeCloseTo(0.7 * 100);
    });

    test("leave a function as it is", () => {
      expect(seeing([1, 1, 2], { backoff: (attempt) => attempt })).toEqual([1, 2, 3]);
    });
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
        const seen = Array.from({ length: 40 }, (_, round) =>
          next(2, { holder: round >> 1, waited: 1e9 * round }),
        );
        for (const pause of [...series(backoff, () => drawn, 40), ...seen]) {
          expect(pause >= 1 && pause <= longest).toBe(true);
        }
      }),
      { seed },
    );
  });
});
