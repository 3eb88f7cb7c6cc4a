import { expect, test } from "vitest";
import { type Permit, Semaphore } from "../../../../src/sync/index.ts";
import { eachSeed, schedule, type Way } from "../schedule.ts";

const limit = 2;

/** Three clients, each cut off from an endpoint, want one of two permits at the same moment. Returns the most holders. */
async function mostAtOnce(seed: number): Promise<number> {
  const { random, client, sleep, run } = schedule(seed, 3);
  const held = new Set<Permit>();
  let most = 0;
  const clients = Array.from({ length: 3 }, async () => {
    const ways: Way[] = ["open", "open", "open"];
    ways[Math.floor(random() * 3)] = random() < 0.5 ? "cut" : "deaf";
    const redlock = client({ ttl: 4_000, timeout: 300, wait: 60_000, backoff: { min: 40 } }, ways);
    const permit = await new Semaphore(redlock, "s", { limit }).acquire();
    held.add(permit);
    most = Math.max(most, [...held].filter((other) => other.remaining() > 0).length);
    await sleep(random() * 60);
    held.delete(permit);
    // A failed release does not matter here: the ttl frees the rest.
    await permit.release().catch(() => undefined);
  });
  await run(Promise.all(clients));
  return most;
}

test("a semaphore of 2 on 3 endpoints never has 3 holders", async () => {
  let full = 0;
  let done = 0;
  const check = async (seed: number) => {
    const most = await mostAtOnce(seed);
    expect(most, "holders at once").toBeLessThanOrEqual(limit);
    done += 1;
    if (most === limit) full += 1;
  };
  // Most of the time two hold a permit together.
  await eachSeed(50, check, () => full > done / 2);
  console.info(`schedules in which two held a permit: ${full} of ${done}`);
}, 300_000);
