import { describe, expect, test } from "vitest";
import type { FaultRule } from "../../../local/src/memory/index.ts";
import { seededRandom } from "../../../local/src/memory/seeded-random.ts";
import { pubSub, Redlock } from "../../../src/index.ts";
import { CyclicBarrier, FairLock, ReadWriteLock, ReentrantLock } from "../../../src/sync/index.ts";
import { seeded } from "../../support/seeded.ts";
import { type VirtualWorld, virtualWorld } from "../../support/virtual-client.ts";

// Random faults of streams and messages, in virtual time: contenders are served one at a time, and none waits for ever.

const { seed, numRuns } = seeded(12);

const streamFaults: readonly FaultRule[] = [
  { fault: "cut-stream", ms: [0, 300], probability: 0.5 },
  { fault: "cut-stream", ms: [0, 300], reset: true, probability: 0.3 },
  { fault: "silent-stream", probability: 0.3 },
  { fault: "drop-message", probability: 0.4 },
  { fault: "duplicate-message", probability: 0.5 },
  { fault: "delay-message", ms: [0, 5_000], probability: 0.5 },
  { fault: "drop-request", command: "SUBSCRIBE", probability: 0.4 },
  { fault: "drop-reply", command: "SUBSCRIBE", probability: 0.4 },
  { fault: "delay", command: "SUBSCRIBE", ms: [0, 150], probability: 0.7 },
];

const kinds = [
  (redlock: Redlock) => redlock.acquire("a"),
  (redlock: Redlock) => new FairLock(redlock, "a").acquire(),
  (redlock: Redlock) => new ReadWriteLock(redlock, "a").acquireWrite(),
  (redlock: Redlock) => new ReentrantLock(redlock, "a").acquire(),
];

/** A world whose streams have some of the faults. */
function faultyWorld(random: () => number): VirtualWorld {
  const world = virtualWorld({
    count: random() < 0.5 ? 1 : 3,
    dialect: random() < 0.5 ? "redis" : "upstash",
  });
  for (const { faults } of world.endpoints) {
    for (const fault of streamFaults) if (random() < 0.4) faults.add(fault);
  }
  return world;
}

const seeds = Array.from({ length: numRuns }, (_, run) => seed + run);
const options = { wakeUp: pubSub, wait: 600_000, timeout: 200, ttl: 60_000 };

async function expectNoStream({ runtime, endpoints }: VirtualWorld) {
  await runtime.advance(6_000);
  for (const { engine } of endpoints) expect(engine.execute(["PUBSUB", "CHANNELS"])).toEqual([]);
}

describe("contenders whose streams have faults", () => {
  test.each(seeds)("seed %i", async (own) => {
    const random = seededRandom(own);
    const world = faultyWorld(random);
    const acquire = kinds[own % kinds.length]!;
    const pause = (ms: number) => new Promise<void>((resolve) => void world.runtime.timer(ms, resolve));
    let inside = 0;
    let most = 0;
    let served = 0;
    const contend = async () => {
      const runtime = { ...world.runtime, random };
      const redlock = new Redlock({ ...options, endpoints: world.endpoints, runtime });
      for (let turn = 0; turn < 3; turn += 1) {
        const lock = await acquire(redlock);
        inside += 1;
        most = Math.max(most, inside);
        await pause(Math.ceil(random() * 50));
        inside -= 1;
        await lock.release();
        served += 1;
      }
    };
    const contenders = Promise.all(Array.from({ length: 6 }, contend));
    // Each grant is found by the pause between polls at the latest, and six ask.
    for (let elapsed = 0; served < 18 && elapsed < 18 * 4_500; elapsed += 500)
      await world.runtime.advance(500);
    expect([served, most]).toEqual([18, 1]);
    await contenders;
    await expectNoStream(world);
  });
});

describe("parties whose streams have faults", () => {
  test.each(seeds.slice(0, Math.ceil(numRuns / 4)))("seed %i", async (own) => {
    const random = seededRandom(own);
    const world = faultyWorld(random);
    const runtime = { ...world.runtime, random };
    let passed = 0;
    const party = async (id: string) => {
      const redlock = new Redlock({ ...options, endpoints: world.endpoints, runtime });
      const barrier = new CyclicBarrier(redlock, "a", { parties: 4 });
      for (let generation = 0; generation < 3; generation += 1) {
        await barrier.arriveAndWait(id);
        passed += 1;
        expect(passed).toBeGreaterThan(generation * 4);
      }
    };
    const parties = Promise.all(["a", "b", "c", "d"].map(party));
    for (let elapsed = 0; passed < 12 && elapsed < 3 * 9_000; elapsed += 500)
      await world.runtime.advance(500);
    expect(passed).toBe(12);
    await parties;
    await expectNoStream(world);
  });
});
