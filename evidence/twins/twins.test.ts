import { createHash } from "node:crypto";
import process from "node:process";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { twins } from "../../lock-server/src/twins/twins.ts";
import { type Script, textOf } from "../../src/redis/script.ts";
import { arrivalScript } from "../../src/sync/internal/arrival.lua.ts";
import { memberScript } from "../../src/sync/internal/member.lua.ts";
import { queueScript } from "../../src/sync/internal/queue.lua.ts";
import { redisServer, startServer } from "../../test/support/redis-servers.ts";
import { luaFiles } from "../../tools/lua.mjs";
import { playScript } from "./play.ts";
import { randomScripts } from "./random-calls.ts";
import { SteppedRedis } from "./stepped-redis.ts";

// The lock server and the embedded engine run the scripts' twins in TypeScript. Here they are held against the Lua, on a real
// redis-server.

/** The scripts that tell those that wait. */
const tellers: readonly Script[] = [memberScript, arrivalScript, queueScript];

test("every script has a twin, which is that of its text", () => {
  expect(randomScripts).toHaveLength(luaFiles().length);
  for (const { script } of randomScripts) {
    for (const dialect of ["redis", "upstash"] as const) {
      const sha = createHash("sha1").update(textOf(script.source, dialect)).digest("hex");
      expect(sha).toBe(script.sha[dialect]);
    }
    expect(twins.has(script.sha.redis), "change the twin as the script was changed, then its hash").toBe(
      true,
    );
  }
  expect(twins.size).toBe(randomScripts.length);
});

describe.skipIf(!redisServer)("random states", () => {
  const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));
  const runs = 30 * Number(process.env.RUNS ?? 1);
  console.info(`SEED=${seed}`);
  let redis: SteppedRedis;
  beforeAll(async () => {
    redis = await SteppedRedis.open(await startServer());
  });
  afterAll(() => redis.close());

  test.each(randomScripts)(
    "the twin of $name does what its Lua does",
    { timeout: 120_000 },
    async (random) => {
      const replies = new Set<string>();
      const tells = tellers.includes(random.script);
      const hasTold = () => [...replies].some((reply) => reply.startsWith("message,"));
      // Not always the same: refusals, and grants.
      const isVaried = () => replies.size > 20 && (!tells || hasTold());
      for (let run = 0; run < runs || !isVaried(); run += 1) {
        const { answers, difference } = await playScript(redis, random, seed + run);
        if (difference) expect(difference.mine, difference.trace.join("\n")).toEqual(difference.theirs);
        for (const answer of answers) replies.add(answer);
      }
      expect(hasTold()).toBe(tells);
    },
  );
});
