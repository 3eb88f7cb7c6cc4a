import fc from "fast-check";
import { afterAll, beforeAll, describe, it } from "vitest";
import { redisServer } from "../../../test/support/redis-servers.ts";
import { seeded } from "../../../test/support/seeded.ts";
import { groups, inspection } from "./command-arbitrary.ts";
import { expectSameAnswers } from "./compare.ts";
import { type RedisServer, startRedisServer } from "./redis-server.ts";

describe.runIf(redisServer !== undefined)("commands, engine and redis-server", () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedisServer();
  });
  afterAll(() => redis?.stop());

  for (const [group, command] of Object.entries(groups)) {
    it(`give the same answers: ${group}`, { timeout: 120_000 }, async () => {
      const sequences = fc.array(command, { minLength: 1, maxLength: 40, size: "max" });
      await fc.assert(
        fc.asyncProperty(sequences, (commands) => expectSameAnswers(redis, [...commands, ...inspection])),
        seeded(80),
      );
    });
  }
});
