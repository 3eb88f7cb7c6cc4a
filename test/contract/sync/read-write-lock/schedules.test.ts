import { expect, test } from "vitest";
import { type Hold, ReadWriteLock } from "../../../../src/sync/index.ts";
import { eachSeed, schedule, type Way } from "../schedule.ts";

/** Most holders at the same moment: readers, writers, and the sum of both while there was a writer. */
interface Most {
  readers: number;
  beside: number;
}

/**
 * A reader, a writer and one of either, each cut off from an endpoint, want it at the same moment. Endpoints execute
 * some requests twice, some after later ones, and some once more a good while later.
 */
async function mostAtOnce(seed: number): Promise<Most> {
  const { random, client, endpoints, sleep, run } = schedule(seed, 3);
  const held = new Map<Hold, "read" | "write">();
  const most: Most = { readers: 0, beside: 0 };
  for (const { faults } of endpoints) {
    faults.add({ fault: "duplicate", probability: 0.1 });
    faults.add({ fault: "reorder", probability: 0.05 });
  }
  const echoes = (async () => {
    for (let index = 0; index < 6; index += 1) {
      await sleep(random() * 80);
      const endpoint = endpoints[Math.floor(random() * 3)]!;
      const late = endpoint.log[Math.floor(random() * endpoint.log.length)];
      // The answer is lost; the first one may be that the script is not known yet.
      if (late) endpoint.send(late.command, new AbortController().signal).catch(() => undefined);
    }
  })();
  const look = () => {
    const kinds = [...held].flatMap(([hold, kind]) => (hold.remaining() > 0 ? kind : []));
    const readers = kinds.filter((kind) => kind === "read").length;
    most.readers = Math.max(most.readers, readers);
    if (readers < kinds.length) most.beside = Math.max(most.beside, kinds.length);
  };
  const clients = (["read", "write", random() < 0.5 ? "read" : "write"] as const).map(async (kind) => {
    const ways: Way[] = ["open", "open", "open"];
    ways[Math.floor(random() * 3)] = random() < 0.5 ? "cut" : "deaf";
    const redlock = client({ ttl: 2_000, timeout: 300, wait: 120_000, backoff: { min: 100 } }, ways);
    const lock = new ReadWriteLock(redlock, "s");
    const hold = kind === "read" ? await lock.acquireRead() : await lock.acquireWrite();
    held.set(hold, kind);
    look();
    await sleep(random() * 60);
    // Where an extension failed, it goes on with its present validity.
    if (random() < 0.3) await hold.extend().catch(() => undefined);
    look();
    await sleep(random() * 60);
    held.delete(hold);
    await hold.release().catch(() => undefined);
  });
  await run(Promise.all([...clients, echoes]));
  return most;
}

test("a writer never holds it beside a reader or another writer", async () => {
  let together = 0;
  const check = async (seed: number) => {
    const { readers, beside } = await mostAtOnce(seed);
    expect(beside, "holders while there was a writer").toBe(1);
    if (readers === 2) together += 1;
  };
  // Readers do not exclude each other.
  await eachSeed(30, check, () => together >= 3);
  console.info(`schedules in which two readers read at once: ${together}`);
}, 300_000);
