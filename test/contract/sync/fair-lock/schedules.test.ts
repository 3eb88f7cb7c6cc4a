import { expect, test } from "vitest";
import { FairLock, type Hold } from "../../../../src/sync/index.ts";
import { eachSeed, schedule, type Way } from "../schedule.ts";

interface Seen {
  /** Most holders at the same moment. */
  readonly most: number;
  readonly grants: number;
  readonly aborted: number;
}

/** Four clients that want the lock, three of them each cut off from one of three endpoints, and one that gives up. */
async function contention(seed: number): Promise<Seen> {
  const { random, client, sleep, run } = schedule(seed, 3, { haste: 0.02 });
  const holds = new Set<Hold>();
  const seen = { most: 0, grants: 0, aborted: 0 };
  const clients = Array.from({ length: 4 }, async (_, index) => {
    const ways: Way[] = ["open", "open", "open"];
    if (index > 0) ways[Math.floor(random() * 3)] = random() < 0.5 ? "cut" : "deaf";
    const options = { ttl: 4_000, timeout: 300, wait: 60_000, backoff: { min: 40 } };
    const controller = new AbortController();
    if (index === 3 && random() < 0.5) void sleep(random() * 400).then(() => controller.abort("enough"));
    try {
      const hold = await new FairLock(client(options, ways), "f").acquire({ signal: controller.signal });
      holds.add(hold);
      seen.grants += 1;
      seen.most = Math.max(seen.most, [...holds].filter((other) => other.remaining() > 0).length);
      await sleep(random() * 60);
      holds.delete(hold);
      // A failed release does not matter here: the ttl frees the rest.
      await hold.release().catch(() => undefined);
    } catch (error) {
      if (error !== "enough") throw error;
      seen.aborted += 1;
    }
  });
  await run(Promise.all(clients));
  return seen;
}

test("a fair lock never has 2 holders, and is granted to all", async () => {
  let aborted = 0;
  const check = async (seed: number) => {
    const seen = await contention(seed);
    expect(seen.most, "holders at once").toBe(1);
    expect(seen.grants + seen.aborted).toBe(4);
    aborted += seen.aborted;
  };
  await eachSeed(30, check, () => aborted >= 5);
  console.info(`${aborted} gave up`);
}, 300_000);
