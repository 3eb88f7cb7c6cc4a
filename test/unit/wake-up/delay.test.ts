import { describe, expect, it } from "vitest";
import { delayOf } from "../../../src/wake-up/delay.ts";

describe("delayOf", () => {
  it("is at most four round trips, and for some nothing", () => {
    expect(delayOf(10, 0)).toBe(40);
    expect(delayOf(10, 0.5)).toBeCloseTo(35.99, 2);
    expect(delayOf(10, 0.9999)).toBe(0);
    expect(delayOf(0, 0.5)).toBe(0);
  });
});
