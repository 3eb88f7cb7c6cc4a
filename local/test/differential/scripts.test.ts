import fc from "fast-check";
import { afterAll, beforeAll, describe, it } from "vitest";
import { freeScript } from "../../../src/lock/free.lua.ts";
import { cellScript } from "../../../src/redis/cell.lua.ts";
import { peekScript } from "../../../src/redis/peek.lua.ts";
import { redisServer } from "../../../test/support/redis-servers.ts";
import { seeded } from "../../../test/support/seeded.ts";
import { Engine } from "../../src/engine/engine.ts";
import { expectSameAnswers } from "./compare.ts";
import { type RedisServer, startRedisServer } from "./redis-server.ts";

const value = fc.constantFrom("t1", "t2", "t3");
// What a key has, is to have, or nothing.
const text = fc.constantFrom("t1", "t2", "t3", "record", "");
// Far apart, so that the ms between the two servers do not matter.
const ttl = fc.constantFrom(1_000_000, 2_000_000, 4_000_000);
const names = ["a", "b", "c"] as const;
// Near 2^53, and near the present time in ms; every digit of the counter must be right.
const least = fc.constantFrom(1, 1_763_714_567_890, 1_763_714_567_891, 9_007_199_254_740_000);

const operation = fc
  .record({
    keys: fc.subarray([...names], { minLength: 1 }),
    fenced: fc.boolean(),
    op: fc.constantFrom("claim", "restore", "keep", "end"),
    value,
    texts: fc.array(fc.tuple(text, text), { minLength: 3, maxLength: 3 }),
    // As the library sends them: nothing, and the value; or the value, and nothing.
    isPlain: fc.boolean(),
    ttl,
    least,
    byName: fc.boolean(),
  })
  .map(({ op, keys, value: token, ...call }) => {
    const all = call.fenced ? [...keys, "void", ...keys.map((key) => `${key}:fence`)] : keys;
    const plain = { claim: ["", token], restore: ["", token], keep: [token, token], end: [token, ""] }[op];
    const pairs = keys.flatMap((_, index) => {
      const [expected, next] = call.isPlain ? plain! : call.texts[index]!;
      // Only an end writes nothing: the other operations always have a next value.
      return [expected!, op === "end" ? next! : next || token];
    });
    const words = [op, token, keys.length, call.ttl, 3_000_000, call.least, 8_000_000, ...pairs];
    const script = call.byName ? ["EVALSHA", cellScript.sha.redis] : ["EVAL", cellScript.source];
    return [...script, all.length, ...all, ...words];
  });

const peek = fc
  .constantFrom(...names)
  .map((key) => ["EVAL", peekScript.source, 2, key, `${key}:fence`, "peek"]);
const free = fc.constantFrom(...names).map((key) => ["EVAL", freeScript.source, 1, key, "free", "a-nonce"]);

// Interference between operations: a key expires, or an operator forces a release.
const interference = fc.constantFrom(...names, "void", "a:fence").map((key) => ["DEL", key]);
const noCounter = fc.constantFrom("x", "").map((text) => ["SET", "b:fence", text]);

const finalState = [...names, ...names.map((key) => `${key}:fence`), "void"].flatMap((key) => [
  ["GET", key],
  ["PTTL", key],
]);

describe.runIf(redisServer !== undefined)("the scripts of locks, engine and redis-server", () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedisServer();
  });
  afterAll(() => redis?.stop());

  it("does the same to keys, ttls, fences and tombstones", { timeout: 120_000 }, async () => {
    const steps = fc.oneof(
      { weight: 8, arbitrary: operation },
      { weight: 1, arbitrary: peek },
      { weight: 1, arbitrary: free },
      { weight: 1, arbitrary: interference },
      { weight: 1, arbitrary: noCounter },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(steps, { minLength: 1, maxLength: 25, size: "max" }), async (commands) => {
        const engine = new Engine({ dialect: "redis" });
        engine.execute(["SCRIPT", "LOAD", cellScript.source]);
        await redis.execute(["SCRIPT", "LOAD", cellScript.source]);
        await expectSameAnswers(redis, [...commands, ...finalState], engine);
      }),
      seeded(100),
    );
  });
});
