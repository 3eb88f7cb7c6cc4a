import fc from "fast-check";
import { expect, test } from "vitest";
import { debounce } from "../../../../src/sync/index.ts";
import { seeded } from "../../../support/seeded.ts";
import { schedule } from "../schedule.ts";

// The model: a call runs if no other came within its window. Calls come alone, or several at the same moment, of which
// one is the last.

const window = 1_000;
const visits = fc.record({
  after: fc.integer({ min: 1, max: 2_000 }),
  calls: fc.integer({ min: 1, max: 3 }),
});

test.each([1, 2, 3, 5])("debounce on %i endpoints behaves like its model", async (count) => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 0, max: 2 ** 31 }),
      fc.array(visits, { minLength: 1, maxLength: 10 }),
      async (seed, all) => {
        const { client, runtime, sleep, run } = schedule(seed, count, { haste: 0 });
        const begin = runtime.now();
        const now = () => runtime.now() - begin;
        const runs: number[][] = all.map(() => []);
        const pending: Promise<boolean[]>[] = [];
        const times: number[] = [];
        for (const [index, { after, calls }] of all.entries()) {
          // A call at the very end of a window may or may not be within it.
          await run(sleep(after === window ? after + 1 : after));
          times.push(now());
          const outcomes = Array.from({ length: calls }, async () => {
            const outcome = await debounce(client({ timeout: 50 }), "n", { window }, () =>
              runs[index]!.push(now()),
            );
            return outcome.ran;
          });
          pending.push(Promise.all(outcomes));
        }
        const results = await run(Promise.all(pending));
        times.forEach((time, index) => {
          const runsHere = (times[index + 1] ?? Infinity) > time + window ? 1 : 0;
          expect(runs[index]!.length, `runs of the calls at ${time}, of ${times}`).toBe(runsHere);
          expect(results[index]!.filter((ran) => ran).length).toBe(runsHere);
          for (const at of runs[index]!) expect(at).toBeGreaterThanOrEqual(time + window);
        });
      },
    ),
    seeded(15),
  );
});
