import fc from "fast-check";
import { expect, test } from "vitest";
import { once } from "../../../../src/sync/index.ts";
import { seeded } from "../../../support/seeded.ts";
import { schedule } from "../schedule.ts";

// The model: when the last run began. Replicas call alone, or several at the same moment.

const every = 1_000;
const visits = fc.record({
  after: fc.integer({ min: 0, max: 700 }),
  replicas: fc.integer({ min: 1, max: 3 }),
  fails: fc.boolean(),
});

test.each([1, 2, 3, 5])("once on %i endpoints behaves like its model", async (count) => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 0, max: 2 ** 31 }),
      fc.array(visits, { minLength: 1, maxLength: 8 }),
      async (seed, all) => {
        const { client, runtime, sleep, run } = schedule(seed, count, { haste: 0 });
        // The endpoints' time: whole ms, and an interval may end at the beginning of one.
        const now = () => Math.floor(runtime.now());
        let last = -Infinity;
        let lastFence = 0;
        for (const { after, replicas, fails } of all) {
          await run(sleep(after));
          const visited = now();
          const due = visited - last >= every;
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
          // No call waits for the end of an interval.
          expect(runs).toBe(due ? 1 : 0);
          const ran = outcomes.filter((outcome) =>
            outcome.status === "rejected" ? fails : outcome.value.ran,
          ).length;
          expect(ran).toBe(runs);
        }
      },
    ),
    seeded(15),
  );
});

test.each([20, 33, 100, 1_000, 15_000])(
  "replicas that call one after another within every: %d share a run",
  async (every) => {
    for (let seed = 0; seed < 40; seed += 1) {
      const { client, sleep, run, random } = schedule(seed, seed % 2 ? 1 : 3, { haste: 0 });
      let runs = 0;
      const replicas = Array.from({ length: 3 }, async () => {
        await sleep(random() * 0.2 * every);
        return once(client({}), "n", { every }, () => {
          runs += 1;
        });
      });
      const outcomes = await run(Promise.all(replicas));
      expect(runs, `seed ${seed}`).toBe(1);
      expect(outcomes.filter(({ ran }) => ran).length).toBe(1);
    }
  },
);
