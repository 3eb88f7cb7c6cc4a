import { describe, expect, test } from "vitest";
import { LockLostError, QuorumError } from "../../../src/errors.ts";
import { autoExtend } from "../../../src/lock/auto-extend.ts";
import type { Backoff } from "../../../src/quorum/backoff.ts";
import { stopwatch } from "../../../src/runtime.ts";
import { budget, makeValidity } from "../../support/validity.ts";

describe("autoExtend", () => {
  /** Extends `validity` with requests that take `delay` ms, and notes when each was sent and for how long. */
  function extending(
    made: ReturnType<typeof makeValidity>,
    options: {
      ttl?: number;
      maxHold?: number;
      delay?: number;
      backoff?: Backoff;
      fail?: () => Error | undefined;
    } = {},
  ) {
    const { runtime, validity } = made;
    const { ttl = 1_000, maxHold = Infinity, delay = 0, backoff = {}, fail = () => undefined } = options;
    const start = runtime.now();
    const calls: [at: number, ttl: number][] = [];
    const extend = async (length: number) => {
      calls.push([runtime.now() - start, length]);
      const sent = stopwatch(runtime);
      if (delay > 0) await new Promise<void>((resolve) => runtime.timer(delay, resolve));
      const error = fail();
      if (error) throw error;
      validity.extend(length, sent);
    };
    const over = autoExtend(validity, { runtime, ttl: () => ttl, maxHold, backoff, extend });
    return { calls, over };
  }

  test("extends at half of the validity, each time", async () => {
    const made = makeValidity();
    const { calls } = extending(made);
    await made.runtime.advance(2_500);
    expect(calls).toEqual([494, 988, 1_482, 1_976, 2_470].map((at) => [at, 1_000]));
    expect(made.validity.signal.aborted).toBe(false);
  });

  test("retries after growing pauses while validity remains, and then ends", async () => {
    const made = makeValidity();
    const { calls, over } = extending(made, { fail: () => new QuorumError("extend", ["r"], []) });
    await made.runtime.advance(10_000);
    await over;
    const times = calls.map(([at]) => at);
    expect(times[0]).toBe(494);
    expect(times.length > 2 && times.length < 10).toBe(true);
    expect(Math.max(...times)).toBeLessThan(budget);
    const gaps = times.slice(1).map((at, index) => at - times[index]!);
    for (const gap of gaps) expect(gap).toBeGreaterThanOrEqual(25);
    expect(made.validity.loss).toBeInstanceOf(LockLostError);
    expect(made.runtime.pending).toBe(0);
  });

  test.each([
    [400, [494, 894, 941]],
    // Just as long as the validity.
    [494, [494, 741]],
  ])(
    "tries once more where a pause of %i ms would outlast the validity, half way to its end",
    async (pause, at) => {
      const made = makeValidity();
      const error = new QuorumError("extend", ["r"], []);
      const { calls, over } = extending(made, { fail: () => error, backoff: () => pause });
      await made.runtime.advance(10_000);
      await over;
      expect(calls.map(([time]) => time)).toEqual(at);
      expect(made.validity.loss).toBeInstanceOf(LockLostError);
    },
  );

  test("does so again after a success", async () => {
    const made = makeValidity();
    let tries = 0;
    const fail = () => (++tries % 3 === 0 ? undefined : new QuorumError("extend", ["r"], []));
    const { calls } = extending(made, { fail, backoff: () => 400 });
    await made.runtime.advance(1_900);
    expect(calls.map(([at]) => at)).toEqual([494, 894, 941, 1_435, 1_835, 1_882]);
    expect(made.validity.signal.aborted).toBe(false);
  });

  test("an explicit extension ends the pause after a failure", async () => {
    const made = makeValidity();
    let tries = 0;
    const fail = () => (++tries === 1 ? new QuorumError("extend", ["r"], []) : undefined);
    const { calls } = extending(made, { fail, backoff: () => 400 });
    await made.runtime.advance(600);
    made.validity.extend(1_000, stopwatch(made.runtime));
    await made.runtime.advance(600);
    expect(calls.map(([at]) => at)).toEqual([494, 1_094]);
  });

  test("does not retry in a tight loop before the end, even if timers fire early", async () => {
    const made = makeValidity();
    made.runtime.early = 0.5;
    const { calls, over } = extending(made, { fail: () => new QuorumError("extend", ["r"], []) });
    await made.runtime.advance(2_000);
    await over;
    expect(calls.filter(([at]) => at > budget - 50).length).toBeLessThan(8);
    expect(made.validity.loss).toBeInstanceOf(LockLostError);
  });

  test.each([
    ["a loss", new LockLostError(["r"], "gone")],
    ["an error of another kind", new TypeError("broken")],
  ])("ends at once with %s", async (_what, error) => {
    const made = makeValidity();
    const { calls, over } = extending(made, { fail: () => error });
    await made.runtime.advance(5_000);
    await over;
    expect(calls).toHaveLength(1);
  });

  test("shortens the last extension, so that the lock is not held for longer than maxHold", async () => {
    const made = makeValidity();
    const { calls, over } = extending(made, { maxHold: 2_000 });
    await made.runtime.advance(10_000);
    await over;
    expect(calls).toEqual([
      [494, 1_000],
      [988, 1_000],
      [1_482, 518],
    ]);
    expect(made.validity.loss).toBeInstanceOf(LockLostError);
    expect(made.validity.loss?.message).toMatch(/its validity ended \(maxHold 2000 ms\)$/);
  });

  test.each([
    ["shorter than the ttl", 700],
    ["just over", 1_001],
    ["so that the last extension is hardly shortened", 996],
    ["long", 3_000],
    ["none", 0],
  ])("sends few extensions before the end: maxHold %s", async (_what, maxHold) => {
    const made = makeValidity();
    const { calls, over } = extending(made, { maxHold });
    await made.runtime.advance(20_000);
    await over;
    expect(calls.length).toBeLessThanOrEqual(Math.ceil(maxHold / 494));
    for (const [at, ttl] of calls) expect(at + ttl).toBeLessThanOrEqual(maxHold);
    expect(made.validity.loss?.message).toContain(`(maxHold ${maxHold} ms)`);
  });

  test.each([300, 700, 1_500, 3_300])("sends few extensions before a limit of %i ms", async (limit) => {
    const made = makeValidity({ limit });
    const { calls, over } = extending(made);
    const { signal } = made.validity;
    await made.runtime.advance(limit - 30);
    expect(signal.aborted).toBe(false);
    await made.runtime.advance(20_000);
    await over;
    expect(calls.length).toBeLessThanOrEqual(Math.ceil(limit / 494));
    for (const [at, ttl] of calls) expect(at + ttl).toBeLessThanOrEqual(limit);
    expect(made.validity.loss?.message).toContain("(deadline)");
    expect(signal.aborted).toBe(true);
  });

  test("restarts its interval after an explicit extension", async () => {
    const made = makeValidity();
    const { calls } = extending(made);
    await made.runtime.advance(400);
    made.validity.extend(1_000, stopwatch(made.runtime));
    await made.runtime.advance(493);
    expect(calls).toEqual([]);
    await made.runtime.advance(1);
    expect(calls).toEqual([[894, 1_000]]);
  });
});
