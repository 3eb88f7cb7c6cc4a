import { describe, expect, it } from "vitest";
import { VirtualTime } from "../../../local/src/memory/virtual-time.ts";
import { delayOf } from "../../../src/wake-up/delay.ts";
import { seeded } from "../../support/seeded.ts";

describe("delayOf", () => {
  it("is at most four round trips, and for some nothing", () => {
    expect(delayOf(10, 0)).toBe(40);
    expect(delayOf(10, 0.5)).toBeCloseTo(35.99, 2);
    expect(delayOf(10, 0.9999)).toBe(0);
    expect(delayOf(0, 0.5)).toBe(0);
  });

  it.each([2, 10, 100, 1_000])("lets few of %i ask before they hear that somebody does", (waiters) => {
    const { seed, numRuns } = seeded(500);
    const time = new VirtualTime({ seed });
    const roundTrip = 10;
    let [asked, waited] = [0, 0];
    for (let run = 0; run < numRuns; run += 1) {
      const delays = Array.from({ length: waiters }, () => delayOf(roundTrip, time.random()));
      const first = Math.min(...delays);
      waited += first;
      asked += delays.filter((delay) => delay <= first + roundTrip).length;
    }
    // About 2, 5, 6 and 8 ask, the first of them after about 32, 23, 11 and 1 ms.
    expect(asked / numRuns).toBeLessThan(10);
    expect(waited / numRuns).toBeLessThan(3.5 * roundTrip);
  });
});
