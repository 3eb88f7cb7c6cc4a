import fc from "fast-check";
import { expect, test } from "vitest";
import { CyclicBarrier } from "../../../../src/sync/index.ts";
import { seeded } from "../../../support/seeded.ts";
import { schedule } from "../schedule.ts";

// The model: a generation is complete when the last of its parties has arrived, and each party passes with its next
// round.

const pause = 50;
const delays = fc.integer({ min: 0, max: 300 });

test.each([1, 2, 3, 5])("a barrier on %i endpoints behaves like its model", async (endpoints) => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 0, max: 2 ** 31 }),
      fc.integer({ min: 1, max: 4 }).chain((parties) =>
        // By party, and by generation: how long it does something else before it comes.
        fc.array(fc.array(delays, { minLength: 3, maxLength: 3 }), {
          minLength: parties,
          maxLength: parties,
        }),
      ),
      async (seed, all) => {
        const { client, runtime, sleep, run } = schedule(seed, endpoints, { haste: 0 });
        const come: number[][] = all.map(() => []);
        const passed: number[][] = all.map(() => []);
        const numbers: number[][] = all.map(() => []);
        const lives = all.map(async (turns, index) => {
          const redlock = client({ timeout: 500, backoff: { min: 5, max: pause } });
          const barrier = new CyclicBarrier(redlock, "b", { parties: all.length });
          for (const delay of turns) {
            await sleep(delay);
            come[index]!.push(runtime.monotonic());
            numbers[index]!.push(await barrier.arriveAndWait(`party-${index}`, { wait: 60_000 }));
            passed[index]!.push(runtime.monotonic());
          }
        });
        await run(Promise.all(lives));
        const [first = 0] = numbers[0]!;
        for (const each of numbers) expect(each).toEqual([first, first + 1, first + 2]);
        for (let turn = 0; turn < 3; turn += 1) {
          const complete = Math.max(...come.map((times) => times[turn]!));
          for (const times of passed) {
            expect(times[turn]).toBeGreaterThanOrEqual(complete);
            expect(times[turn]).toBeLessThanOrEqual(complete + pause);
          }
        }
      },
    ),
    seeded(10),
  );
});
