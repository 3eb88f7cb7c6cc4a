import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Redlock } from "../../../src/index.ts";
import { ioredisEndpoint } from "../../../src/sockets/index.ts";
import { CountDownLatch } from "../../../src/sync/index.ts";
import { pubSub } from "../../../src/wake-up/index.ts";
import { patient } from "../../support/beyond-tests.ts";
import { type LimitedRedis, startLimitedRedis } from "../../support/limited-redis.ts";
import { newResource } from "../../support/local-endpoints.ts";
import { redisServer } from "../../support/redis-servers.ts";
import { holders } from "../sync/holders.ts";

// Since Redis 7 a new user has no right to any channel. A message is a hint, so a release that cannot send one succeeds.

/** Holds something, lets somebody wait for it, and releases it. Resolves with what the release returned. */
type Pass = (redlock: Redlock, name: string) => Promise<unknown>;

type Holdable = { release(): Promise<boolean | undefined> };

async function passOn(acquire: () => Promise<Holdable>, next = acquire): Promise<boolean> {
  const held = await acquire();
  const waiting = next();
  waiting.catch(() => undefined);
  const released = await held.release();
  return Boolean(await (await waiting).release()) && Boolean(released);
}

const passes: Record<string, Pass> = {
  "a lock": (redlock, name) => passOn(() => redlock.acquire(name)),
  ...Object.fromEntries(
    holders.map(({ title, acquire, another }) => [
      title,
      (redlock: Redlock, name: string) =>
        passOn(
          () => acquire(redlock, name),
          () => another(redlock, name),
        ),
    ]),
  ),
  CountDownLatch: async (redlock, name) => {
    const latch = new CountDownLatch(redlock, name, { count: 2 });
    const waiting = latch.wait();
    await latch.arrive("a");
    const { open } = await latch.arrive("b");
    await waiting;
    return open;
  },
};

describe.skipIf(!redisServer)("a Redis user without a right to channels", () => {
  let redis: LimitedRedis;
  beforeAll(async () => {
    redis = await startLimitedRedis();
  });
  afterAll(() => redis.close());

  describe.each([
    ["without channels", ["resetchannels", "+@all"]],
    ["without PUBLISH", ["allchannels", "+@all", "-publish"]],
  ])("%s", (_, rights) => {
    test.each(Object.entries(passes))("%s is passed on all the same", async (_, pass) => {
      const client = await redis.connectAs("~*", ...rights);
      try {
        const endpoints = [ioredisEndpoint(client)];
        const options = { ...patient, wait: 20_000, backoff: { min: 5, max: 20 }, wakeUp: pubSub };
        expect(await pass(new Redlock({ ...options, endpoints }), newResource())).toBe(true);
      } finally {
        client.disconnect();
      }
    });
  });
});
