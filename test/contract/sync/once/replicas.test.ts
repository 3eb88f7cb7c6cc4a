import { expect, test } from "vitest";
import { once } from "../../../../src/sync/index.ts";
import { schedule } from "../schedule.ts";

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
