import fc from "fast-check";
import { afterAll, beforeAll, describe, it } from "vitest";
import { redisServer } from "../../../test/support/redis-servers.ts";
import { seeded } from "../../../test/support/seeded.ts";
import { Engine } from "../../src/engine/engine.ts";
import { expectSameAnswers } from "./compare.ts";
import { program } from "./lua-arbitrary.ts";
import { type RedisServer, startRedisServer } from "./redis-server.ts";

describe.runIf(redisServer !== undefined)("Lua, engine and redis-server", () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedisServer();
  });
  afterAll(() => redis?.stop());

  it("runs random programs with the same results", { timeout: 120_000 }, async () => {
    const engine = new Engine({ dialect: "redis" });
    const finalState = ["k", "l", "h"].map((key) => ["TYPE", key]);
    await fc.assert(
      fc.asyncProperty(fc.array(program, { minLength: 1, maxLength: 5 }), async (programs) => {
        engine.flush();
        await expectSameAnswers(redis, [...programs, ...finalState, ["GET", "k"], ["GET", "l"]], engine);
      }),
      seeded(400),
    );
  });
});
