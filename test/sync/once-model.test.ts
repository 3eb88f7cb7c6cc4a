import fc from "fast-check";
import { expect, test } from "vitest";
import { once } from "../../src/sync/index.ts";
import { seeded } from "../fuzz/seeded.ts";
import { schedule } from "./schedule.ts";

// A plain model of it: when the last run began. Replicas come alone or several at the same moment.

const every = 1_000;
const visits = fc.record({
  after: fc.integer({ min: 0, max: 700 }),
  replicas: fc.integer({ min: 1, max: 3 }),
  fails: fc.boolean(),
});

test.each([1, 2, 3, 5])("once on %i endpoints is like its model", async (count) => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 0, max: 2 ** 31 }),
      fc.array(visits, { minLength: 1, maxLength: 8 }),
      async (seed, all) => {
        const { client, runtime, sleep, run } = schedule(seed, count, { haste: 0 });
        // As the endpoints tell it: in whole ms, of which an interval may end at the first moment.
        const now = () => Math.floor(runtime.now());
        let last = -Infinity;
        let lastFence = 0;
        for (const { after, replicas, fails } of all) {
          await run(sleep(after));
          const visited = now();
          const due = visited - last >= every;
          // What ends within the waiting may be waited for.
          const soon = visited - last >= every - 200;
          let runs = 0;
          const calls = Array.from({ length: replicas }, () =>
            once(
              client({ timeout: 50 }),
              "n",
              { every, ttl: 100, wait: 200 },
              async ({ fence, remaining }) => {
                runs += 1;
                expect(fence).toBeGreaterThan(lastFence);
                expect(remaining()).toBeGreaterThan(every * 0.9 - 200);
                expect(now() - last).toBeGreaterThanOrEqual(every);
                last = now();
                lastFence = fence;
                if (fails) throw new Error("failed");
              },
            ),
          );
          const outcomes = await run(Promise.allSettled(calls));
          expect(runs).toBeLessThanOrEqual(1);
          if (due) expect(runs).toBe(1);
          if (!soon) expect(runs).toBe(0);
          const ran = outcomes.filter((outcome) =>
            outcome.status === "rejected" ? fails : outcome.value.ran,
          ).length;
          expect(ran).toBe(runs);
        }
      },
    ),
    seeded(40),
  );
});
