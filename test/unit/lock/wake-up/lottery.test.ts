import { describe, expect, it } from "vitest";
import { asksIn, drawTurns, shuffled, watchesIn } from "../../../../src/lock/wake-up/lottery.ts";

describe("drawTurns", () => {
  it("spreads the waiters of a stream over the turns, at the distance given", () => {
    expect(drawTurns(3, 1, () => 0)).toEqual([0, 1, 2]);
    expect(drawTurns(3, 1, () => 0.5)).toEqual([0.5, 1.5, 2.5]);
    expect(drawTurns(2, 10, () => 0.25)).toEqual([2.5, 12.5]);
    expect(drawTurns(0, 10, () => 0.25)).toEqual([]);
  });
});

describe("asksIn", () => {
  it("lets the first four turns ask, each in its slot", () => {
    expect(asksIn(0, 5, 100)).toBe(0);
    expect(asksIn(3.5, 5, 100)).toBe(17.5);
  });

  it("lets the next four ask where the next message does not come", () => {
    expect(asksIn(4, 5, 100)).toBe(220);
    expect(asksIn(7.5, 5, 100)).toBe(237.5);
    expect(asksIn(8, 5, 100)).toBe(Infinity);
    expect(asksIn(5, 5, Infinity)).toBe(Infinity);
  });
});

describe("watchesIn", () => {
  it("lets the first four watch, each in its slot, and four times as many each time that it lasts as long again", () => {
    const times = [0, 3, 4, 16, 64, Infinity].map((watch) => watchesIn(watch, 5));
    expect(times).toEqual([750, 765, 770, 1_520, 2_270, Infinity]);
  });
});

describe("shuffled", () => {
  it("has every order, and every item once", () => {
    const orders = new Set<string>();
    for (const first of [0, 0.4, 0.8]) {
      for (const second of [0, 0.6]) {
        const numbers = [first, second];
        orders.add(shuffled(["a", "b", "c"], () => numbers.shift()!).join(""));
      }
    }
    expect([...orders].sort()).toEqual(["abc", "acb", "bac", "bca", "cab", "cba"]);
    expect(shuffled([], Math.random)).toEqual([]);
  });
});
