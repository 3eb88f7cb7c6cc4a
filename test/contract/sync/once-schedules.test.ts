import { expect, test } from "vitest";
import { once } from "../../../src/sync/index.ts";
import { schedule, type Way } from "./schedule.ts";

const first = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));
const schedules = Number(process.env.SCHEDULES ?? 100);
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
test(`no two runs begin within one interval, in ${schedules} schedules`, async () => {
  console.info(`SEED=${first}`);
  let several = 0;
  for (let seed = first; seed < first + schedules; seed += 1) {
    const begun = await beginnings(seed);
    const gaps = begun.slice(1).map((time, index) => time - begun[index]!);
    expect(begun.length, `runs; again with SEED=${seed} SCHEDULES=1`).toBeGreaterThan(0);
    for (const gap of gaps)
      expect(gap, `again with SEED=${seed} SCHEDULES=1`).toBeGreaterThanOrEqual(every - timeout - 1);
    if (gaps.length > 0) several += 1;
  }
  console.info(`schedules with several runs: ${several}`);
  if (schedules >= 100) expect(several).toBeGreaterThan(0);
}, 120_000);
