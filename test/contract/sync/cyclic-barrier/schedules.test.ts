import { expect, test } from "vitest";
import { isRedlockError } from "../../../../src/index.ts";
import { CyclicBarrier } from "../../../../src/sync/index.ts";
import { eachSeed, schedule, type Way } from "../schedule.ts";

const parties = 3;
const generations = 3;

/** The state of a party. */
interface Party {
  /** How many generations it has passed. */
  passed: number;
  /** It waits, or was waiting when its process died. */
  waits: boolean;
  /** How often its process died. */
  deaths: number;
}

/**
 * Three parties, each cut off from an endpoint, meet three times. Requests are executed twice now and then, the second
 * time late; calls give up and are repeated; and one process dies and begins anew.
 *
 * @returns how many runs of generations were begun, and how often it happened that a call gave up
 */
async function meet(seed: number): Promise<{ runs: number; failed: number }> {
  const { random, endpoints, client, runtime, sleep, run } = schedule(seed, 3);
  for (const endpoint of endpoints) {
    const send = endpoint.send.bind(endpoint);
    endpoint.send = (command, signal) => {
      const again = () => void send(command, new AbortController().signal).catch(() => undefined);
      if (random() < 0.1) runtime.timer(Math.ceil(random() * 3_000), again);
      return send(command, signal);
    };
  }
  const texts = new Set<string>();
  const all: Party[] = Array.from({ length: parties }, () => ({ passed: 0, waits: false, deaths: 0 }));
  let failed = 0;
  let base: number | undefined;

  const lives = all.map(async (party, index) => {
    const start = () => {
      const ways: Way[] = ["open", "open", "open"];
      ways[Math.floor(random() * 3)] = random() < 0.5 ? "cut" : "deaf";
      const redlock = client({ timeout: 200, backoff: { min: 40 } }, ways);
      return new CyclicBarrier(redlock, "n", { parties, ttl: 60_000 });
    };
    let barrier = start();
    await sleep(random() * 8);
    while (party.passed < generations) {
      const controller = new AbortController();
      const { signal } = controller;
      const dies = index === 0 && party.deaths < 2 && random() < 0.3;
      if (dies) runtime.timer(Math.ceil(random() * 500), () => controller.abort());
      party.waits = true;
      const level = await barrier
        .arriveAndWait(`party-${index}`, { wait: 50 + random() * 1_000, signal })
        .catch((error: unknown) => {
          if (!signal.aborted && !isRedlockError(error)) throw error;
          return undefined;
        });
      if (level === undefined) {
        failed += 1;
        if (signal.aborted) {
          party.deaths += 1;
          await sleep(random() * 300);
          barrier = start();
        }
        // If it died in the last generation, the others may have gone on without it.
        const others = all.filter((other) => other !== party);
        if (party.deaths > 0 && others.every(({ passed }) => passed === generations)) return;
        continue;
      }
      base ??= level;
      const generation = level - base;
      // Without deaths no party skips a generation or passes one twice.
      if (party.deaths === 0) expect(generation, `generation of party ${index}`).toBe(party.passed);
      for (const other of all) {
        const isThere = other.passed > generation || other.waits;
        const isAligned = other.passed >= generation || other.deaths > 0;
        expect([isThere, isAligned], `parties at ${generation}: ${JSON.stringify(all)}`).toEqual([
          true,
          true,
        ]);
      }
      party.passed = generation + 1;
      party.waits = false;
      for (const { engine } of endpoints) {
        texts.add(String(engine.execute(["HGET", "redlock:barrier:{n}", "g"])).slice(17));
      }
      await sleep(random() * 100);
    }
  });
  await run(Promise.all(lives));
  return { runs: texts.size, failed };
}

test("no party passes before all have arrived", async () => {
  let several = 0;
  let failures = 0;
  const check = async (seed: number) => {
    const { runs, failed } = await meet(seed);
    if (runs > 1) several += 1;
    failures += failed;
  };
  await eachSeed(30, check, () => several > 0 && failures > 0);
  console.info(`schedules in which runs competed: ${several}; calls that gave up: ${failures}`);
}, 120_000);
