import type { EventEmitter } from "node:events";
import { Cluster, Redis } from "ioredis";
import { Redis as Redis5 } from "ioredis-5";
import { createCluster, createSentinel } from "redis";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type AcquireOptions, type Endpoint, Redlock } from "../../../src/index.ts";
import { ioredisEndpoint, nodeRedisEndpoint } from "../../../src/sockets/index.ts";
import { patient } from "../../support/beyond-tests.ts";
import { newResource } from "../../support/local-endpoints.ts";
import { type RedisCluster, startRedisCluster } from "../../support/redis-cluster.ts";
import { primaryName, type RedisSentinel, startRedisSentinel } from "../../support/redis-sentinel.ts";
import { redisServer } from "../../support/redis-servers.ts";
import { forbidUnhandledRejections } from "../../support/unhandled.ts";
import { until } from "../../support/until.ts";

// Clients of a Cluster whose slots move to other nodes, and of a sentinel whose primary dies. That the keys of a resource share a
// slot: test/unit/redis/keys.test.ts.

const ignore = () => undefined;
const host = "127.0.0.1";
const opened: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close();
});

/** An endpoint over a client of ioredis, or of node-redis, which ends with the test. */
function overIoredis(client: Parameters<typeof ioredisEndpoint>[0] & EventEmitter & { disconnect(): void }) {
  client.on("error", ignore);
  opened.push(() => client.disconnect());
  return ioredisEndpoint(client);
}
async function overNodeRedis(client: ReturnType<typeof createCluster> | ReturnType<typeof createSentinel>) {
  client.on("error", ignore);
  opened.push(() => client.destroy());
  await client.connect();
  return nodeRedisEndpoint(client);
}

const redlockOf = (endpoint: Endpoint, options = {}) =>
  new Redlock({ ...patient, endpoints: [endpoint], wait: 0, ...options });
const kinds: readonly [string, AcquireOptions][] = [
  ["plain", {}],
  ["fenced", { fencing: true }],
];

/** Another client finds the lock held until its release, and then draws a larger fence. */
async function expectHeld(
  lock: Awaited<ReturnType<Redlock["acquire"]>>,
  other: Redlock,
  options: AcquireOptions,
) {
  const [resource] = lock.resources as [string];
  await until(async () => (await other.tryAcquire(resource).catch(ignore)) === null, "a refusal");
  expect(await lock.extend()).toBeGreaterThan(0);
  expect(await lock.release()).toBe(true);
  const next = await other.acquire(resource, options);
  expect((next.fence ?? 1) > (lock.fence ?? 0)).toBe(true);
  expect(await next.release()).toBe(true);
}

describe.skipIf(!redisServer).each(["ioredis", "node-redis"] as const)("a Cluster client of %s", (via) => {
  forbidUnhandledRejections();
  let cluster: RedisCluster;
  beforeEach(async () => {
    cluster = await startRedisCluster();
    opened.push(() => cluster.close());
  });
  const open = () => {
    if (via === "ioredis") return overIoredis(new Cluster(cluster.ports.map((port) => ({ host, port }))));
    const rootNodes = cluster.ports.map((port) => ({ url: `redis://${host}:${port}` }));
    return overNodeRedis(createCluster({ rootNodes }));
  };
  /** Its first claim, a script with two keys, comes before the move: a slot that moves refuses such a script for a moment. */
  const experienced = async () => {
    const redlock = redlockOf(await open());
    await (await redlock.acquire(newResource())).release();
    return redlock;
  };

  test("is an endpoint without streams, whose replies are exact only if it sends nothing twice", async () => {
    const { exactReplies, subscribe, name, dialect } = await open();
    expect([exactReplies, subscribe, dialect]).toEqual([via === "node-redis", undefined, "redis"]);
    expect(name).toMatch(/^127\.0\.0\.1:\d+$|^node-redis$/);
  });

  test.each(kinds)("a lock, %s, outlives the move of its slot", async (_, options) => {
    const [holder, other] = [await experienced(), await experienced()];
    for (let time = 0; time < 3; time += 1) {
      const resource = newResource();
      const lock = await holder.acquire(resource, options);
      await cluster.moveSlotOf(`redlock:lock:{${resource}}`, async () => {
        expect([await other.tryAcquire(resource), await lock.verify()]).toEqual([null, true]);
      });
      await expectHeld(lock, other, options);
    }
  });

  test("several resources of one tag are locked together; of several slots, Redis refuses them", async () => {
    const [holder, other] = [redlockOf(await open()), redlockOf(await open())];
    const lock = await holder.acquire(["{order}:1", "{order}:2"]);
    await cluster.moveSlotOf("redlock:lock:{order}:1");
    expect(await other.tryAcquire("{order}:2")).toBeNull();
    expect(await lock.extend()).toBeGreaterThan(0);
    expect(await lock.release()).toBe(true);
    await expect(holder.acquire(["a", "b"])).rejects.toThrow(/CROSSSLOT|same (hash )?slot/);
  });
});

describe.skipIf(!redisServer).each(["ioredis", "ioredis 5, exact", "node-redis"] as const)(
  "%s with Sentinel",
  (via) => {
    forbidUnhandledRejections();
    let servers: RedisSentinel;
    beforeEach(async () => {
      servers = await startRedisSentinel();
      opened.push(() => servers.close());
    });
    const open = () => {
      const sentinel = { host, port: servers.port };
      if (via === "node-redis") {
        return overNodeRedis(createSentinel({ name: primaryName, sentinelRootNodes: [sentinel] }));
      }
      const options = { sentinels: [sentinel], name: primaryName };
      return overIoredis(
        via === "ioredis" ? new Redis(options) : new Redis5({ ...options, maxRetriesPerRequest: 0 }),
      );
    };

    test("is an endpoint, whose replies are exact only if its client sends nothing twice", async () => {
      const { name, exactReplies, subscribe } = await open();
      expect(exactReplies).toBe(via === "ioredis 5, exact");
      expect(name).toMatch(via === "node-redis" ? /^127\.0\.0\.1:\d+$/ : /^mymaster$/);
      expect(subscribe === undefined).toBe(via === "node-redis");
    });

    test.each(kinds)("a lock, %s, that the replica has outlives a failover", async (_, options) => {
      const holder = redlockOf(await open(), { timeout: 1_000 });
      const other = redlockOf(await open(), { timeout: 1_000 });
      const lock = await holder.acquire(newResource(), options);
      await servers.replicated();
      await servers.killPrimary();
      // Until the client has found the new primary, calls fail.
      await until(() => lock.verify().catch(ignore), "the client to reach the new primary");
      await expectHeld(lock, other, options);
    });

    test("a call that begins without a primary has its lock from the next one", async () => {
      const client = redlockOf(await open(), { timeout: 1_000, wait: 50_000 });
      const other = redlockOf(await open());
      await (await client.acquire("before")).release();
      const promoted = servers.killPrimary();
      const lock = await client.acquire(newResource());
      await promoted;
      expect(await lock.verify()).toBe(true);
      await expectHeld(lock, other, {});
    });
  },
);
