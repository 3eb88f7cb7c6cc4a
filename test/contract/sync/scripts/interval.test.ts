import { describe, expect, test } from "vitest";
import { intervalScript } from "../../../../src/sync/internal/interval.lua.ts";
import { virtualWorld } from "../../../support/virtual-client.ts";

// What depends on a single ms, and second executions. The rest is in the tests of `once`.

const [n1, n2] = ["1", "2"].map((digit) => `t${digit.repeat(32)}`) as [string, string];

describe("an interval", () => {
  /** An interval of its own on one endpoint, whose clock shows 999 ms after a full second. */
  async function newInterval() {
    const { runtime, endpoints } = virtualWorld({ count: 1 });
    await runtime.advance(999);
    const [key, end, fence] = ["once", "end", "fence"];
    const execute = (...command: (string | number)[]) => endpoints[0]!.engine.execute(command);
    const run = (...args: (string | number)[]) =>
      execute("EVAL", intervalScript.source, 3, key!, end!, fence!, ...args);
    return { runtime, execute, run, end: () => execute("GET", "end") };
  }
  const start = 1_700_000_000_999;

  test("a release changes the ends only of a run of its own", async () => {
    const { runtime, run, end } = await newInterval();
    run(n1, "acquire", 20_000, 1_000, 0);
    run(n1, "release", 0);
    expect(end()).toBe(null);
    run(n1, "acquire", 20_000, 1_000, 0);
    run(n1, "extend", 1_000, 1, 7, 5_000);
    run(n2, "release", 0);
    const interval = `${start}-${start + 1_000}`;
    expect(end()).toBe(`${interval}:0-0`);
    await runtime.advance(1_000);
    run(n2, "acquire", 20_000, 1_000, 0);
    run(n2, "release", 0);
    expect(end()).toBe(`${interval}:0-0`);
    run(n2, "acquire", 20_000, 1_000, 0);
    run(n2, "extend", 1_000, 1, 7, 5_000);
    run(n2, "release", 0);
    expect(end()).toBe(`${interval}:${interval}`);
  });

  test("a fence outlives the moment that it names, and else the interval", async () => {
    for (const [ahead, longer] of [
      [-5, 0],
      [30_000, 30_000],
    ] as const) {
      const { run, execute } = await newInterval();
      run(n1, "acquire", 20_000, 1_000, 0);
      run(n1, "extend", 1_000, 1, start + ahead, 5_000);
      expect(["once", "end", "fence"].map((key) => execute("PTTL", key))).toEqual([
        1_000,
        6_000,
        6_000 + longer,
      ]);
    }
  });

  test("is not prolonged by a repeated confirmation, but by the next one; its fence never falls", async () => {
    const { runtime, run, execute } = await newInterval();
    run(n1, "acquire", 20_000, 60_000, 0);
    for (const [number, ms, fence, remaining] of [
      [1, 60_000, 9, 60_000],
      [1, 60_000, 9, 59_900],
      [2, 60_000, 5, 60_000],
      // It is late.
      [1, 90_000, 9, 59_900],
    ] as const) {
      expect((run(n1, "extend", ms, number, fence, 5_000) as unknown[])[0]).toBe(n1);
      expect([execute("PTTL", "once"), execute("GET", "fence")]).toEqual([remaining, "9"]);
      await runtime.advance(100);
    }
    expect((run(n2, "extend", 60_000, 1, 9, 5_000) as unknown[])[0]).toBe(0);
  });
});
