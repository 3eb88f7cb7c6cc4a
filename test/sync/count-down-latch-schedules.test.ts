import { expect, test } from "vitest";
import { CountDownLatch } from "../../src/sync/index.ts";
import { type Schedule, schedule, type Way } from "./schedule.ts";

const first = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));
const schedules = Number(process.env.SCHEDULES ?? 150);
const count = 3;

/** Each way but one is open. */
function anyWays({ random }: Schedule): Way[] {
  const ways: Way[] = ["open", "open", "open"];
  ways[Math.floor(random() * 3)] = random() < 0.5 ? "cut" : "deaf";
  return ways;
}

/** Three clients, each cut off from an endpoint, arrive at about the same moment; how many were told that it is open. */
async function openings(seed: number): Promise<number> {
  const stage = schedule(seed, 3);
  const { random, client, sleep, run } = stage;
  const latch = (wait: number) =>
    new CountDownLatch(client({ timeout: 300, wait, backoff: { min: 40 } }, anyWays(stage)), "n", { count });
  let begun = 0;
  const arrivals = Array.from({ length: count }, async (_, index) => {
    const own = latch(60_000);
    await sleep(random() * 8);
    begun += 1;
    const { open } = await own.arrive(`part-${index}`);
    if (!open) return 0;
    expect(begun, "arrivals that had begun when it was open").toBe(count);
    // From now on everybody is told so, whichever endpoint cannot be reached.
    for (let later = 0; later < 3; later += 1) expect((await latch(60_000).inspect()).open).toBe(true);
    return 1;
  });
  const waiting = latch(600_000).wait();
  const told = await run(Promise.all(arrivals));
  await run(waiting);
  return told.reduce<number>((sum, open) => sum + open, 0);
}

test(`whoever arrives last is told that it is open, in ${schedules} schedules`, async () => {
  console.info(`SEED=${first}`);
  const seen = new Map<number, number>();
  for (let seed = first; seed < first + schedules; seed += 1) {
    const told = await openings(seed).catch((error: Error) => {
      throw new Error(`again with SEED=${seed} SCHEDULES=1: ${error.message}`, { cause: error });
    });
    expect(told, `told that it is open; again with SEED=${seed} SCHEDULES=1`).toBeGreaterThan(0);
    seen.set(told, (seen.get(told) ?? 0) + 1);
  }
  console.info(`schedules by how many were told: ${JSON.stringify(Object.fromEntries(seen))}`);
  if (schedules >= 100) expect([seen.get(1), seen.get(2)]).not.toContain(undefined);
}, 120_000);
