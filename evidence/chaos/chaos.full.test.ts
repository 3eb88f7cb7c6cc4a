import process from "node:process";
import { describe, expect, test } from "vitest";
import { redisServer } from "../../test/support/redis-servers.ts";
import { seedsUntil } from "../../test/support/seeded.ts";
import { runChaos } from "./main.ts";
import { evaluateRun } from "./report.ts";

// A short run, in real time; `node evidence/chaos.mjs --minutes 5` is the long one.
const seed = Number(process.env.SEED ?? 20_260_101);

describe.skipIf(redisServer === undefined)("chaos on redis-servers", () => {
  test("breaks no promise", { timeout: 600_000 }, async () => {
    // On a busy machine less happens in that time.
    let isIdle = true;
    for (const next of seedsUntil({ seed, numRuns: 1 }, () => !isIdle)) {
      const run = await runChaos({
        seconds: 20,
        seed: next,
        endpoints: 3,
        clients: 4,
        project: process.cwd(),
        signal: new AbortController().signal,
      });
      const { text, checks } = evaluateRun(run);
      console.log(text);
      expect(checks.filter(({ holds }) => !holds)).toEqual([]);
      expect(run.last.size).toBeGreaterThan(0);
      const { times } = run;
      const killed = times["server killed, memory kept"] + times["server killed, memory lost"];
      const granted = run.holds.filter((hold) => hold.granted !== undefined);
      isIdle = Math.min(killed, times["client killed"], granted.length) === 0;
    }
    expect(isIdle).toBe(false);
  });
});
