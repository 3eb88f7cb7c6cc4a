import { createHash } from "node:crypto";
import process from "node:process";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { twins } from "../../lock-server/src/twins/twins.ts";
import { textOf } from "../../src/redis/script.ts";
import { redisServer, startServer } from "../../test/support/redis-servers.ts";
import { luaFiles } from "../../tools/lua.mjs";
import { playScript } from "./play.ts";
import { randomScripts } from "./random-calls.ts";
import { SteppedRedis } from "./stepped-redis.ts";

// The lock server and the embedded engine run the scripts' twins in TypeScript. Here they are held against the Lua, on a real
// redis-server.

test("every script has a twin, which is that of its text", () => {
  const scripts = Object.values(randomScripts).map(({ script }) => script);
  expect([scripts.length, twins.size]).toEqual([luaFiles().length, luaFiles().length]);
  for (const { source, sha } of scripts) {
    for (const dialect of ["redis", "upstash"] as const) {
      expect(createHash("sha1").update(textOf(source, dialect)).digest("hex")).toBe(sha[dialect]);
    }
    expect([...twins.keys()], "change the twin as the script was changed, then its hash").toContain(
      sha.redis,
    );
  }
});

describe.skipIf(!redisServer)("random states", () => {
  const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));
  const runs = 15 * Number(process.env.RUNS ?? 1);
  console.info(`SEED=${seed}`);
  let redis: SteppedRedis;
  beforeAll(async () => {
    redis = await SteppedRedis.open(await startServer());
  });
  afterAll(() => redis.close());

  test.each(Object.entries(randomScripts))(
    "the twin of %sScript does what its Lua does",
    { timeout: 120_000 },
    async (_, random) => {
      const replies = new Set<string>();
      const tells = random.script.source.includes("PUBLISH");
      const hasTold = () => [...replies].some((reply) => reply.startsWith("message,"));
      // Not always the same: refusals, and grants.
      for (let run = 0; run < runs || replies.size <= 20 || (tells && !hasTold()); run += 1) {
        const { answers, difference } = await playScript(redis, random, seed + run);
        if (difference) expect(difference.mine, difference.trace.join("\n")).toEqual(difference.theirs);
        for (const answer of answers) replies.add(answer);
      }
      expect(hasTold()).toBe(tells);
    },
  );
});
