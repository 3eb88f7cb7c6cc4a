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
});

test("a sleep ends by itself or with its signal, and leaves neither timer nor listener", async () => {
  for (const isAborted of [false, true]) {
    const runtime = steppingRuntime();
    const controller = new AbortController();
    const asleep = sleep(runtime, 50, controller.signal);
    if (isAborted) controller.abort();
    else await runtime.advance(50);
    await asleep;
    expect([runtime.pending, getEventListeners(controller.signal, "abort")]).toEqual([0, []]);
  }
});

test("work that may take any time is waited for", async () => {
  const done: string[] = [];
  const work = sleep(systemRuntime, 20).then(() => done.push("work"));
  await settledWithin(systemRuntime, Infinity, work);
  expect(done).toEqual(["work"]);
});

test("a token has 128 bits, a fixed length, and begins with a letter", () => {
  const filled = (byte: number) =>
    randomToken({ ...systemRuntime, randomBytes: (bytes) => void bytes.fill(byte) });
  expect([filled(0), filled(255)]).toEqual([`t${"00".repeat(16)}`, `t${"ff".repeat(16)}`]);
  expect(filled(10)).toHaveLength(tokenLength);
});

describe("a timer", () => {
  const { timer } = systemRuntime;

  test("keeps the process alive, unless it need not", () => {
    using set = vi.spyOn(globalThis, "setTimeout");
    timer(60_000, () => undefined)();
    timer(60_000, () => undefined, false)();
    expect(set.mock.results.map(({ value }) => value.hasRef())).toEqual([true, false]);
    // Elsewhere than on Node and Bun a timer is a number.
    set.mockReturnValue(7 as unknown as NodeJS.Timeout);
    expect(() => timer(60_000, () => undefined, false)()).not.toThrow();
  });

  test("is cancelled as it was set, although timers have been faked since", () => {
    const cancel = timer(60_000, () => undefined);
    vi.stubGlobal("clearTimeout", () => expect.unreachable("the fake one does not know it"));
    cancel();
    vi.unstubAllGlobals();
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

  test("returns false when waitUntil throws: the caller then awaits the work, and loses no lock", () => {
    const waitUntil = () => {
      throw new TypeError("Illegal invocation");
    };
    expect(keepAlive(resolveSettings(context, { waitUntil }), Promise.resolve())).toBe(false);
  });
});
