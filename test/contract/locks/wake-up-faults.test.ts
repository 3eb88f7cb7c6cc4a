import { describe, expect, test } from "vitest";
import { pubSub, Redlock } from "../../../src/index.ts";
import type { FaultRule } from "../../../src/testing/index.ts";
import { seededRandom } from "../../support/random.ts";
import { seeded } from "../../support/seeded.ts";
import { virtualWorld } from "../../support/virtual-client.ts";

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

describe("contenders whose streams have faults", () => {
  test.each(Array.from({ length: numRuns }, (_, run) => seed + run))("seed %i", async (own) => {
    const random = seededRandom(own);
    const count = random() < 0.5 ? 1 : 3;
    const world = virtualWorld({ count, dialect: random() < 0.5 ? "redis" : "upstash" });
    for (const { faults } of world.endpoints) {
      for (const fault of streamFaults) if (random() < 0.4) faults.add(fault);
    }
    const pause = (ms: number) => new Promise<void>((resolve) => void world.runtime.timer(ms, resolve));
    let inside = 0;
    let most = 0;
    let served = 0;
    const contend = async () => {
      const runtime = { ...world.runtime, random };
      const options = { wakeUp: pubSub, wait: 600_000, timeout: 200, ttl: 60_000 };
      const redlock = new Redlock({ ...options, endpoints: world.endpoints, runtime });
      for (let turn = 0; turn < 3; turn += 1) {
        const lock = await redlock.acquire("a");
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
    await world.runtime.advance(6_000);
    for (const { engine } of world.endpoints) expect(engine.execute(["PUBSUB", "CHANNELS"])).toEqual([]);
  });
});
