import { getEventListeners } from "node:events";
import { describe, expect, test, vi } from "vitest";
import { seededRandom } from "../../local/src/memory/seeded-random.ts";
import { resolveSettings } from "../../src/lock/options.ts";
import {
  keepAlive,
  type Runtime,
  randomToken,
  settledWithin,
  sleep,
  stopwatch,
  systemRuntime,
  tokenLength,
} from "../../src/runtime/runtime.ts";
import { seeded } from "../support/seeded.ts";
import { steppingRuntime } from "../support/stepping-runtime.ts";
import { forbidUnhandledRejections } from "../support/unhandled.ts";

describe("stopwatch, on random clocks", () => {
  const { seed, numRuns } = seeded(50);

  /** Two clocks that are rounded, set and frozen at random, read after each of it, and what a stopwatch must show. */
  function play(own: number) {
    const random = seededRandom(own);
    const precision = [0.001, 0.1, 1][Math.floor(3 * random())]!;
    const largest = random() < 0.3 ? 3 : 5_000;
    let real = 1_000 * random();
    let wallOffset = 1_700_000_000_000;
    let frozen = 0;
    const runtime: Runtime = {
      ...systemRuntime,
      now: () => Math.floor(real + wallOffset),
      monotonic: () => Math.floor((real - frozen) / precision) * precision,
    };
    const watches: { began: number; events: number; forward: number; last: number; elapsed: () => number }[] =
      [];
    let events = 0;
    let forward = 0;
    for (let step = 0; step < 300; step += 1) {
      const kind = random();
      const size = largest * random() ** 3;
      if (kind < 0.1) {
        real += size;
        frozen += size;
      } else {
        real += random() < 0.5 ? random() / 50 : 100 * random();
        if (kind < 0.2) {
          const change = random() < 0.5 ? size : -size;
          wallOffset += change;
          forward += Math.max(0, change);
        }
      }
      events += kind < 0.2 ? 1 : 0;
      const began = { began: real, events, forward, last: 0, elapsed: stopwatch(runtime) };
      if (random() < 0.1) watches.push(began);
      for (const watch of watches) {
        if (random() < 0.5) continue;
        const elapsed = watch.elapsed();
        const least = real - watch.began;
        const most = least + forward - watch.forward;
        const hidden = 3 * (1 + events - watch.events);
        if (elapsed < least - hidden || elapsed > most + hidden || elapsed < watch.last) {
          expect.unreachable(`seed ${own}: ${elapsed} after ${watch.last}, real time ${least} to ${most}`);
        }
        watch.last = elapsed;
      }
    }
  }

  test(`misses and adds no more than rounding hides, and never goes back (seed ${seed})`, () => {
    for (let own = seed; own < seed + numRuns; own += 1) play(own);
  });

  test.each([
    ["both start again in the past", 1_000_000, 0],
    ["both start again in the future", 4_000_000_000_000, 5_000_000_000],
    ["only the monotonic clock starts again", undefined, 0],
    ["only the wall clock is in another century", 1_000_000, undefined],
  ])("goes on where other clocks take their place: %s", (_what, wall, monotonic) => {
    let real = 50_000_000;
    let replaced: { wall: number; monotonic: number } | undefined;
    const runtime: Runtime = {
      ...systemRuntime,
      now: () => (replaced?.wall ?? 1_700_000_000_000) + real,
      monotonic: () => (replaced?.monotonic ?? 0) + real,
    };
    stopwatch(runtime)();
    for (const now of [true, false]) {
      replaced = now
        ? { wall: wall ?? 1_700_000_000_000, monotonic: monotonic === undefined ? 0 : monotonic - real }
        : undefined;
      const elapsed = stopwatch(runtime);
      real += 700;
      expect(elapsed()).toBeCloseTo(700, 2);
    }
  });
});

describe("sleep", () => {
  test("leaves no listener on its signal when it ends by itself", async () => {
    const runtime = steppingRuntime();
    const { signal } = new AbortController();
    const asleep = sleep(runtime, 50, signal);
    expect(getEventListeners(signal, "abort")).toHaveLength(1);
    await runtime.advance(50);
    await asleep;
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });

  test("ends with its signal, and leaves neither timer nor listener", async () => {
    const runtime = steppingRuntime();
    const controller = new AbortController();
    const asleep = sleep(runtime, 1_000_000, controller.signal);
    expect(runtime.pending).toBe(1);
    controller.abort();
    await asleep;
    expect(runtime.pending).toBe(0);
    await sleep(runtime, 1_000_000, controller.signal);
    expect(runtime.pending).toBe(0);
  });
});

test("work that may take any time is waited for", async () => {
  const done: string[] = [];
  const work = sleep(systemRuntime, 20).then(() => done.push("work"));
  await settledWithin(systemRuntime, Infinity, work);
  expect(done).toEqual(["work"]);
});

describe("randomToken", () => {
  test("has 128 bits, a fixed length, and begins with a letter", () => {
    const filled = (byte: number): Runtime => ({
      ...systemRuntime,
      randomBytes: (bytes) => void bytes.fill(byte),
    });
    expect(randomToken(filled(0))).toBe(`t${"00".repeat(16)}`);
    expect(randomToken(filled(255))).toBe(`t${"ff".repeat(16)}`);
    expect(randomToken(filled(10))).toHaveLength(tokenLength);
    expect(() => JSON.parse(randomToken(filled(17)))).toThrow(SyntaxError);
  });
});

describe("systemRuntime", () => {
  test("its timers keep a process alive, unless they need not", () => {
    const set = vi.spyOn(globalThis, "setTimeout");
    try {
      for (const [keepsAlive, expected] of [
        [undefined, true],
        [true, true],
        [false, false],
      ] as const) {
        const cancel = systemRuntime.timer(60_000, () => undefined, keepsAlive);
        expect(set.mock.results.at(-1)?.value.hasRef()).toBe(expected);
        expect(set.mock.calls.at(-1)?.[1]).toBe(60_000);
        cancel();
      }
      const clear = vi.spyOn(globalThis, "clearTimeout");
      const cancel = systemRuntime.timer(60_000, () => undefined);
      const other = vi.fn();
      vi.stubGlobal("clearTimeout", other);
      cancel();
      // Fake timers have come meanwhile, which do not know it.
      expect([clear.mock.calls.length, other.mock.calls.length]).toEqual([1, 0]);
      vi.unstubAllGlobals();
      clear.mockRestore();
      // Elsewhere than on Node and Bun a timer is a number.
      set.mockReturnValue(7 as unknown as NodeJS.Timeout);
      expect(() => systemRuntime.timer(60_000, () => undefined, false)()).not.toThrow();
    } finally {
      set.mockRestore();
    }
  });
});

const context = { endpoints: [], runtime: systemRuntime };

describe("keepAlive", () => {
  forbidUnhandledRejections();

  test("accepts a waitUntil that is asynchronous and rejects, and work that fails", async () => {
    const failing = () => Promise.reject(new Error("no"));
    const hostile = () => ({
      // biome-ignore lint/suspicious/noThenProperty: what a platform may return
      get then() {
        throw new Error("hostile");
      },
    });
    for (const waitUntil of [failing, hostile, { waitUntil: failing }, () => undefined]) {
      const settings = resolveSettings(context, { waitUntil: waitUntil as () => void });
      expect(keepAlive(settings, Promise.resolve())).toBe(true);
      expect(keepAlive(settings, Promise.reject(new Error("failed work")))).toBe(true);
    }
  });

  const work = Promise.resolve();

  test("returns false when waitUntil throws: the caller then awaits the work, and loses no lock", () => {
    const waitUntil = () => {
      throw new TypeError("Illegal invocation");
    };
    expect(keepAlive(resolveSettings(context, { waitUntil }), work)).toBe(false);
  });
});
