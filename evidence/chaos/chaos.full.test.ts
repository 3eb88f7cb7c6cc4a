import process from "node:process";
import { describe, expect, test } from "vitest";
import { redisServer } from "../../test/support/redis-servers.ts";
import { holdThroughRestarts } from "./long-hold.ts";
import { runChaos } from "./main.ts";
import { evaluateRun } from "./report.ts";

// A short run, in real time; `node evidence/chaos.mjs --minutes 5` is the long one.
const seed = Number(process.env.SEED ?? 20_260_101);

describe.skipIf(redisServer === undefined)("chaos on redis-servers", () => {
  test("breaks no promise", { timeout: 240_000 }, async () => {
    const run = await runChaos({
      seconds: 20,
      seed,
      endpoints: 3,
      clients: 4,
      project: process.cwd(),
      signal: new AbortController().signal,
    });
    const { text, checks } = evaluateRun(run);
    console.log(text);
    expect(checks.filter(({ holds }) => !holds)).toEqual([]);
    // The run was not idle.
    const { times } = run.faults;
    expect(times["server killed, memory kept"] + times["server killed, memory lost"]).toBeGreaterThan(0);
    expect(times["client killed"]).toBeGreaterThan(0);
    expect(run.holds.filter(({ granted }) => granted !== undefined).length).toBeGreaterThan(0);
    expect(run.last.size).toBeGreaterThan(0);
  });

  test("a long hold survives a restart of each endpoint in turn", { timeout: 60_000 }, async () => {
    const { signal } = new AbortController();
    const { loss, restarts, stolen, attempts, released } = await holdThroughRestarts({
      seconds: 12,
      ttl: 2_000,
      signal,
    });
    expect(loss).toBeUndefined();
    expect(released).toBe(true);
    expect(Math.min(...restarts)).toBeGreaterThanOrEqual(1);
    expect(attempts).toBeGreaterThan(10);
    expect(stolen).toBe(0);
  });
});
