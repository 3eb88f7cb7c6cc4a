import { describe, expect, test } from "vitest";
import { LockLostError, QuorumError } from "../../../src/errors.ts";
import { autoExtend } from "../../../src/lock/auto-extend.ts";
import { stopwatch } from "../../../src/runtime.ts";
import { steppingRuntime } from "../../support/stepping-runtime.ts";
import { budget, makeValidity } from "../../support/validity.ts";

const outage = new QuorumError("extend", ["r"], []);

interface Given {
  readonly maxHold?: number;
  readonly limit?: number;
  /** What the extension of this number, from 1, fails with. */
  readonly fail?: (number: number) => Error | undefined;
  /** When the lock is extended by hand. */
  readonly byHand?: number;
  /** The part of its time by which each timer fires early. */
  readonly early?: number;
}

/** Extends a lock of 1 s for some time, and notes when each extension was sent and for how long. */
async function extended(ms: number, given: Given = {}) {
  const { maxHold = Infinity, limit = Infinity, fail = () => undefined, byHand = 0, early = 0 } = given;
  // As an acquire cuts it.
  const { runtime, validity } = makeValidity({ ttl: Math.min(1_000, limit) });
  if (limit < 1_000) validity.endsBy = "deadline";
  const held = stopwatch(runtime);
  const start = runtime.now();
  runtime.early = early;
  const calls: [at: number, ttl: number][] = [];
  const extend = async (length: number) => {
    calls.push([runtime.now() - start, length]);
    const sent = stopwatch(runtime);
    const error = fail(calls.length);
    if (error) throw error;
    validity.extend(length, sent);
  };
  const over = autoExtend(validity, { runtime, ttl: () => 1_000, held, maxHold, limit, extend });
  await runtime.advance(byHand);
  if (byHand > 0) validity.extend(1_000, stopwatch(runtime));
  await runtime.advance(ms - byHand);
  const { loss } = validity;
  if (loss) await over;
  return { calls, times: calls.map(([at]) => at), loss, pending: runtime.pending };
}

describe("autoExtend", () => {
  test.each<[what: string, ms: number, Given, times: number[], isLost: boolean]>([
    ["before half of the validity is over, each time", 2_000, {}, [484, 968, 1_453, 1_937], false],
    [
      "at half of what remains after a failure, and not more often than each sixteenth",
      10_000,
      { fail: () => outage },
      [484, 736, 862, 925, 986],
      true,
    ],
    [
      "in time again after a success",
      1_300,
      { fail: (number) => (number === 1 ? outage : undefined) },
      [484, 736, 1_218],
      false,
    ],
    [
      "from an extension by hand on, which ends the pause after a failure",
      1_200,
      { fail: (number) => (number === 1 ? outage : undefined), byHand: 600 },
      [484, 1_094],
      false,
    ],
    ["from an extension by hand on", 1_000, { byHand: 400 }, [890], false],
  ])("extends %s", async (_, ms, given, times, isLost) => {
    const found = await extended(ms, given);
    expect(found.times).toEqual(times);
    expect(found.loss instanceof LockLostError).toBe(isLost);
  });

  test("extends locks of one ttl at the same moments, whenever they were acquired", async () => {
    const runtime = steppingRuntime();
    const moments: number[] = [];
    for (let count = 0; count < 100; count += 1) {
      const { validity } = makeValidity({ runtime, ttl: 10_000 });
      const extend = async (ttl: number) => {
        moments.push(runtime.elapsed);
        validity.extend(ttl, stopwatch(runtime));
      };
      const held = stopwatch(runtime);
      const limits = { held, maxHold: Infinity, limit: Infinity };
      void autoExtend(validity, { runtime, ttl: () => 10_000, ...limits, extend });
      await runtime.advance(50);
    }
    await runtime.advance(5_000);
    expect(moments.length).toBeGreaterThanOrEqual(100);
    expect(new Set(moments).size).toBeLessThan(40);
  });

  test.each([0, 0.5])(
    "retries in no tight loop before the end, even if timers fire early: %d",
    async (early) => {
      const { times, loss, pending } = await extended(10_000, { fail: () => outage, early });
      expect(times.length).toBeGreaterThan(2);
      expect(times.filter((at) => at > budget - 50).length).toBeLessThan(8);
      expect(Math.max(...times)).toBeLessThan(budget);
      expect([loss instanceof LockLostError, pending]).toEqual([true, 0]);
    },
  );

  test.each([new LockLostError(["r"], "gone"), new TypeError("broken")])(
    "ends at once with %s",
    async (error) => {
      expect((await extended(5_000, { fail: () => error })).calls).toHaveLength(1);
    },
  );

  test("shortens the last extension, so that the lock is not held for longer than maxHold", async () => {
    const { calls } = await extended(10_000, { maxHold: 2_000 });
    expect(calls.map(([, ttl]) => ttl)).toEqual([1_000, 1_000, 547]);
  });

  test.each<Given>([
    { maxHold: 0 },
    { maxHold: 700 },
    // The last extension is hardly shortened.
    { maxHold: 996 },
    { maxHold: 1_001 },
    { maxHold: 3_000 },
    { limit: 300 },
    { limit: 700 },
    { limit: 1_500 },
    { limit: 3_300 },
  ])("sends few extensions before the end of %j", async ({ maxHold, limit }) => {
    const { calls, loss } = await extended(20_000, {
      ...(maxHold !== undefined && { maxHold }),
      ...(limit && { limit }),
    });
    const most = maxHold ?? limit!;
    expect(calls.length).toBeLessThanOrEqual(Math.ceil(most / 494));
    for (const [at, ttl] of calls) expect(at + ttl).toBeLessThanOrEqual(most);
    expect(loss?.message).toContain(limit ? "(deadline)" : `(maxHold ${maxHold} ms`);
  });
});
