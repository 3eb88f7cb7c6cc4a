import { describe, expect, test, vi } from "vitest";
import { LockLostError, QuorumError } from "../../../src/errors.ts";
import { Validity } from "../../../src/lock/validity.ts";
import { stopwatch } from "../../../src/runtime.ts";
import { type SteppingRuntime, steppingRuntime } from "../../support/stepping-runtime.ts";

// drift: 1 % of the ttl and 2 ms
const budget = 988;

function make(options: { runtime?: SteppingRuntime; ttl?: number; limit?: number; left?: number } = {}) {
  const { runtime = steppingRuntime(), ttl = 1_000, limit = Infinity, left } = options;
  const onLost = vi.fn();
  const validity = new Validity({
    runtime,
    driftFactor: 0.01,
    elapsed: stopwatch(runtime),
    ttl,
    left,
    limit,
    lostError: (why) => new LockLostError(["r"], why),
    onLost,
  });
  return { runtime, validity, onLost };
}

describe("remaining", () => {
  test("is the ttl without drift and without the time since before the request", async () => {
    const { runtime, validity } = make();
    expect(validity.remaining()).toBe(budget);
    await runtime.advance(300);
    expect(validity.remaining()).toBe(budget - 300);
    await runtime.advance(1_000);
    expect(validity.remaining()).toBe(budget - 1_300);
    expect(validity.loss).toBeInstanceOf(LockLostError);
    expect(validity.remaining()).toBe(0);
  });

  test.each([
    ["the limit", { limit: 400 }, 400],
    ["what is left of a part that is over", { left: 250 }, 250],
    ["the ttl, whatever is said to be left", { left: 5_000 }, budget],
  ])("is bounded by %s", (_what, options, expected) => {
    expect(make(options).validity.remaining()).toBe(expected);
  });

  test("goes by the faster clock, whichever was stopped or set back", async () => {
    for (const disturb of [
      (runtime: SteppingRuntime) => {
        runtime.wallOffset = -60_000;
      },
      (runtime: SteppingRuntime) => {
        runtime.frozen = true;
      },
    ]) {
      const { runtime, validity } = make();
      disturb(runtime);
      await runtime.advance(500);
      expect(validity.remaining()).toBe(budget - 500);
    }
    const { runtime, validity } = make();
    runtime.wallOffset = 700;
    expect(validity.remaining()).toBe(budget - 700);
  });

  test("is 0 once it is released", () => {
    const { validity } = make();
    validity.release();
    expect(validity.remaining()).toBe(0);
    expect(validity.released).toBe(true);
    expect(validity.loss).toBe(undefined);
  });
});

describe("signal", () => {
  test("aborts when the validity ends, although nobody answers or asks", async () => {
    const { runtime, validity, onLost } = make();
    const { signal } = validity;
    await runtime.advance(budget - 1);
    expect(signal.aborted).toBe(false);
    await runtime.advance(1);
    expect(signal.aborted).toBe(true);
    expect(signal.reason).toBeInstanceOf(LockLostError);
    expect(signal.reason).toBe(validity.loss);
    expect(onLost.mock.calls).toEqual([["its validity ended"]]);
    expect(runtime.pending).toBe(0);
  });

  test("costs no timer until somebody asks for it", () => {
    const { runtime, validity } = make();
    expect(runtime.pending).toBe(0);
    expect(validity.signal).toBe(validity.signal);
    expect(runtime.pending).toBe(1);
  });

  test("does not abort when its timer fires early, nor ever late", async () => {
    const runtime = steppingRuntime();
    runtime.early = 0.2;
    const { validity } = make({ runtime });
    const { signal } = validity;
    await runtime.advance(budget - 1);
    expect(signal.aborted).toBe(false);
    await runtime.advance(2);
    expect(signal.aborted).toBe(true);
  });

  test("is aborted already when it is asked for too late", async () => {
    const { runtime, validity } = make();
    await runtime.advance(budget);
    expect(validity.signal.aborted).toBe(true);
    expect(runtime.pending).toBe(0);
  });

  test("moves with a renewal, and to an earlier end, too", async () => {
    const { runtime, validity } = make();
    const { signal } = validity;
    await runtime.advance(900);
    validity.renew(2_000, stopwatch(runtime));
    await runtime.advance(1_900);
    expect(signal.aborted).toBe(false);
    validity.renew(50, stopwatch(runtime));
    await runtime.advance(48);
    expect(signal.aborted).toBe(true);
  });

  test("a renewal that took longer than its ttl ends it at once", async () => {
    const { runtime, validity } = make();
    const { signal } = validity;
    const sent = stopwatch(runtime);
    await runtime.advance(600);
    validity.renew(500, sent);
    expect(signal.aborted).toBe(true);
  });

  test("aborts with what it is told to be lost by, once", () => {
    const { validity, onLost } = make();
    const { signal } = validity;
    const loss = validity.lose("its token is gone");
    expect(validity.lose("again")).toBe(loss);
    expect(signal.reason).toBe(loss);
    expect(onLost).toHaveBeenCalledTimes(1);
    expect(validity.remaining()).toBe(0);
  });

  test("does not abort after a release", async () => {
    const { runtime, validity, onLost } = make();
    const { signal } = validity;
    validity.release();
    expect(runtime.pending).toBe(0);
    await runtime.advance(5_000);
    validity.lose("too late to matter");
    expect(signal.aborted).toBe(false);
    expect(onLost).not.toHaveBeenCalled();
  });
});

describe("autoExtend", () => {
  /** Extends `validity` with requests that take `delay` ms, and notes when each was sent and for how long. */
  function extending(
    made: ReturnType<typeof make>,
    options: { ttl?: number; maxHold?: number; delay?: number; fail?: () => Error | undefined } = {},
  ) {
    const { runtime, validity } = made;
    const { ttl = 1_000, maxHold = Infinity, delay = 0, fail = () => undefined } = options;
    const start = runtime.now();
    const calls: [at: number, ttl: number][] = [];
    const over = validity.autoExtend({ ttl: () => ttl, maxHold, backoff: {} }, async (length) => {
      calls.push([runtime.now() - start, length]);
      const sent = stopwatch(runtime);
      if (delay > 0) await new Promise<void>((resolve) => runtime.timer(delay, resolve));
      const error = fail();
      if (error) throw error;
      validity.renew(length, sent);
    });
    return { calls, over };
  }

  test("asks at half of the validity, each time", async () => {
    const made = make();
    const { calls } = extending(made);
    await made.runtime.advance(2_500);
    expect(calls).toEqual([494, 988, 1_482, 1_976, 2_470].map((at) => [at, 1_000]));
    expect(made.validity.signal.aborted).toBe(false);
  });

  test("counts from before a request that took its time", async () => {
    const made = make();
    const { calls } = extending(made, { delay: 100 });
    await made.runtime.advance(1_500);
    expect(calls.map(([at]) => at)).toEqual([494, 988, 1_482]);
  });

  test("tries again after pauses that grow, within the validity, and then ends", async () => {
    const made = make();
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

  test("does not ask again and again in the last moment, however early timers fire", async () => {
    const made = make();
    made.runtime.early = 0.5;
    const { calls, over } = extending(made, { fail: () => new QuorumError("extend", ["r"], []) });
    await made.runtime.advance(2_000);
    await over;
    expect(calls.filter(([at]) => at > budget - 50).length).toBeLessThan(8);
    expect(made.validity.loss).toBeInstanceOf(LockLostError);
  });

  test("returns to its cadence after a success", async () => {
    const made = make();
    let failures = 2;
    const fail = () => (failures-- > 0 ? new QuorumError("extend", ["r"], []) : undefined);
    const { calls } = extending(made, { fail });
    await made.runtime.advance(1_400);
    const times = calls.map(([at]) => at);
    expect(times.slice(3).map((at, index) => at - times[index + 2]!)).toEqual([494]);
  });

  test.each([
    ["a loss", new LockLostError(["r"], "gone")],
    ["an error of another kind", new TypeError("broken")],
  ])("ends at once with %s", async (_what, error) => {
    const made = make();
    const { calls, over } = extending(made, { fail: () => error });
    await made.runtime.advance(5_000);
    await over;
    expect(calls).toHaveLength(1);
  });

  test("ends with a release, and leaves no timer", async () => {
    const made = make();
    const { calls, over } = extending(made);
    await made.runtime.advance(600);
    made.validity.release();
    await made.runtime.advance(0);
    await over;
    expect(made.runtime.pending).toBe(0);
    await made.runtime.advance(5_000);
    expect(calls).toHaveLength(1);
  });

  test("cuts the last extension, so that nothing is held for longer than maxHold", async () => {
    const made = make();
    const { calls, over } = extending(made, { maxHold: 2_000 });
    await made.runtime.advance(10_000);
    await over;
    expect(calls).toEqual([
      [494, 1_000],
      [988, 1_000],
      [1_482, 518],
    ]);
    expect(made.validity.loss).toBeInstanceOf(LockLostError);
  });

  test.each([
    ["shorter than the ttl", 700],
    ["just over", 1_001],
    ["so that little is cut", 996],
    ["long", 3_000],
    ["none", 0],
  ])("sends no storm of extensions before the end: maxHold %s", async (_what, maxHold) => {
    const made = make();
    const { calls, over } = extending(made, { maxHold });
    await made.runtime.advance(20_000);
    await over;
    expect(calls.length).toBeLessThanOrEqual(Math.ceil(maxHold / 494));
    for (const [at, ttl] of calls) expect(at + ttl).toBeLessThanOrEqual(maxHold);
  });

  test.each([300, 700, 1_500, 3_300])("sends no storm before a limit of %i ms either", async (limit) => {
    const made = make({ limit });
    const { calls, over } = extending(made);
    const { signal } = made.validity;
    await made.runtime.advance(limit - 30);
    expect(signal.aborted).toBe(false);
    await made.runtime.advance(20_000);
    await over;
    expect(calls.length).toBeLessThanOrEqual(Math.ceil(limit / 494));
    for (const [at, ttl] of calls) expect(at + ttl).toBeLessThanOrEqual(limit);
    expect(signal.aborted).toBe(true);
  });

  test("waits anew when it was extended by hand", async () => {
    const made = make();
    const { calls } = extending(made);
    await made.runtime.advance(400);
    made.validity.renew(1_000, stopwatch(made.runtime));
    await made.runtime.advance(493);
    expect(calls).toEqual([]);
    await made.runtime.advance(1);
    expect(calls).toEqual([[894, 1_000]]);
  });

  test("asks sooner when a shorter ttl was chosen by hand", async () => {
    const made = make({ ttl: 10_000 });
    let ttl = 10_000;
    const calls: number[] = [];
    const start = made.runtime.now();
    void made.validity.autoExtend({ ttl: () => ttl, maxHold: Infinity, backoff: {} }, async (length) => {
      calls.push(made.runtime.now() - start);
      made.validity.renew(length, stopwatch(made.runtime));
    });
    await made.runtime.advance(100);
    ttl = 1_000;
    made.validity.renew(ttl, stopwatch(made.runtime));
    await made.runtime.advance(494);
    expect(calls).toEqual([594]);
  });
});
