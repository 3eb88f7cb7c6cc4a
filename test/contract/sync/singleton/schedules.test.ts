import { expect, test } from "vitest";
import { isRedlockError } from "../../../../src/index.ts";
import { singleton } from "../../../../src/sync/index.ts";
import { eachSeed, schedule, type Way } from "../schedule.ts";

// Calls at random times, over a network without an order in which requests are lost, late and executed all the same.

interface Run {
  readonly id: string;
  readonly called: number;
  readonly began: number;
  readonly fence: number;
  readonly remaining: () => number;
}

test.each(["coalesce", "cancel"] as const)(
  "%s: no two at once, and a run that began after the last call",
  { timeout: 60_000 },
  async (mode) => {
    const seen = { replaced: 0, cancelled: 0, afterLast: 0, failed: 0 };
    await eachSeed(
      60,
      async (seed) => {
        const { random, runtime, client, sleep, run } = schedule(seed, seed % 2 ? 1 : 3);
        const ttl = 2_000;
        const now = () => runtime.monotonic();
        const running = new Set<Run>();
        const runs: Run[] = [];
        let lastCall = { at: -1, ended: "" };
        let written = 0;
        const caller = async () => {
          // At most one endpoint of three is silent.
          const silent: Way = random() < 0.5 ? "cut" : "deaf";
          const ways: Way[] = seed % 2 === 0 && random() < 0.3 ? [silent, "open", "open"] : [];
          const redlock = client({ timeout: 200, backoff: { min: 20, max: 200 } }, ways);
          await sleep(random() * 3_000);
          const called = now();
          const length = random() * (mode === "cancel" ? 5_000 : 1_000);
          const isDeaf = random() < 0.2;
          const own = { at: called, ended: "" };
          if (called > lastCall.at) lastCall = own;
          try {
            const outcome = await singleton(
              redlock,
              "n",
              { mode, ttl, wait: 60_000 },
              async ({ id, fence, signal, remaining }) => {
                const began = now();
                for (const other of running) {
                  expect(other.remaining(), `${other.id} and ${id} at once`).toBeLessThanOrEqual(0);
                }
                const own = { id, called, began, fence, remaining };
                for (const before of runs) expect(fence).toBeGreaterThan(before.fence);
                running.add(own);
                runs.push(own);
                try {
                  for (const end = began + length; now() < end; ) {
                    await sleep(50);
                    if (remaining() > 0) {
                      expect(fence).toBeGreaterThanOrEqual(written);
                      written = fence;
                    }
                    if (signal.aborted && !isDeaf) throw signal.reason;
                  }
                } finally {
                  running.delete(own);
                }
              },
            );
            own.ended = outcome.ran ? "ran" : "replaced";
            if (!outcome.ran) seen[outcome.began ? "cancelled" : "replaced"] += 1;
          } catch (error) {
            if (!isRedlockError(error)) throw error;
            own.ended = error.code;
            seen.failed += 1;
          }
        };
        await run(Promise.all(Array.from({ length: 5 }, caller)));
        if (lastCall.ended === "ran") seen.afterLast += 1;
        const began = Math.max(...runs.map((each) => each.began));
        if (lastCall.ended === "ran" || lastCall.ended === "replaced")
          expect(began, "a run after the last call").toBeGreaterThanOrEqual(lastCall.at);
      },
      () => seen.replaced > 0 && seen.afterLast > 0 && (mode === "coalesce" || seen.cancelled > 0),
    );
  },
);
