import { expect, test } from "vitest";
import { once } from "../../../../src/sync/index.ts";
import { eachSeed, schedule, type Way } from "../schedule.ts";

const every = 5_000;
const timeout = 200;

/** Three replicas, each cut off from an endpoint, call three times each. Returns when their runs began. */
async function beginnings(seed: number): Promise<number[]> {
  const { random, client, runtime, sleep, run } = schedule(seed, 3);
  const begun: number[] = [];
  const replicas = Array.from({ length: 3 }, async () => {
    const ways: Way[] = ["open", "open", "open"];
    ways[Math.floor(random() * 3)] = random() < 0.5 ? "cut" : "deaf";
    const redlock = client({ timeout, backoff: { min: 40 } }, ways);
    for (let visit = 0; visit < 3; visit += 1) {
      await sleep(random() * 4_000);
      const routine = () => void begun.push(runtime.monotonic());
      // A replica without a quorum leaves it to the others; it must not run.
      await once(redlock, "nightly", { every, ttl: 1_000 }, routine).catch(() => undefined);
    }
  });
  await run(Promise.all(replicas));
  return begun;
}

// The interval begins when a quorum knows of the run, the run when the answers arrive; and Redis counts whole ms.
test("no two runs begin within one interval", async () => {
  let several = 0;
  const check = async (seed: number) => {
    const begun = await beginnings(seed);
    const gaps = begun.slice(1).map((time, index) => time - begun[index]!);
    expect(begun.length, "runs").toBeGreaterThan(0);
    for (const gap of gaps) expect(gap).toBeGreaterThanOrEqual(every - timeout - 1);
    if (gaps.length > 0) several += 1;
  };
  await eachSeed(20, check, () => several > 0);
  console.info(`schedules with several runs: ${several}`);
}, 120_000);
