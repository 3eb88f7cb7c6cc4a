import { Cluster } from "ioredis";
import { createCluster } from "redis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type Endpoint, Redlock } from "../../../src/index.ts";
import { ioredisEndpoint, nodeRedisEndpoint } from "../../../src/sockets/index.ts";
import { patient } from "../../support/beyond-tests.ts";
import { newResource } from "../../support/local-endpoints.ts";
import { type RedisCluster, startRedisCluster } from "../../support/redis-cluster.ts";
import { redisServer } from "../../support/redis-servers.ts";
import { forbidUnhandledRejections } from "../../support/unhandled.ts";

// Cluster clients, while slots move to other nodes. That the keys of a resource share a slot: test/unit/redis/keys.test.ts.

const ignore = () => undefined;

describe.skipIf(!redisServer).each(["ioredis", "node-redis"] as const)("a Cluster client of %s", (via) => {
  forbidUnhandledRejections();
  let cluster: RedisCluster;
  let opened: (() => void)[] = [];
  beforeAll(async () => {
    cluster = await startRedisCluster(redisServer!);
  });
  beforeEach(() => cluster.flush());
  afterEach(() => {
    for (const close of opened) close();
    opened = [];
  });
  afterAll(() => cluster.close());

  function open(): Endpoint {
    if (via === "ioredis") {
      const client = new Cluster(cluster.ports.map((port) => ({ host: "127.0.0.1", port })));
      client.on("error", ignore);
      opened.push(() => client.disconnect());
      return ioredisEndpoint(client);
    }
    const client = createCluster({
      rootNodes: cluster.ports.map((port) => ({ url: `redis://127.0.0.1:${port}` })),
    });
    client.on("error", ignore).connect().catch(ignore);
    opened.push(() => client.destroy());
    return nodeRedisEndpoint(client);
  }
  const redlock = (options = {}) => new Redlock({ ...patient, endpoints: [open()], wait: 0, ...options });
  /** Its first claim, a script with two keys, comes before the move: a slot that moves refuses such a script for a moment. */
  const experienced = async (options = {}) => {
    const client = redlock(options);
    await (await client.acquire(newResource())).release();
    return client;
  };
  const keyOf = (resource: string) => `redlock:lock:${resource.includes("{") ? resource : `{${resource}}`}`;

  test("is an endpoint without streams, whose replies are exact only if it sends nothing twice", () => {
    const { exactReplies, subscribe, name, dialect } = open();
    expect({ exactReplies, subscribe, dialect }).toEqual({
      exactReplies: via === "node-redis",
      subscribe: undefined,
      dialect: "redis",
    });
    expect(name).toMatch(/^127\.0\.0\.1:\d+$|^node-redis$/);
  });

  test.each([
    ["plain", {}],
    ["fenced", { fencing: true }],
  ])("a lock, %s, outlives the move of its slot", async (_, options) => {
    const [holder, other] = [await experienced(), await experienced()];
    for (let time = 0; time < 3; time += 1) {
      const resource = newResource();
      const lock = await holder.acquire(resource, options);
      const check = async () => {
        expect(await other.tryAcquire(resource)).toBeNull();
        expect(await lock.verify()).toBe(true);
      };
      await cluster.moveSlotOf(keyOf(resource), check);
      await check();
      expect(await lock.extend()).toBeGreaterThan(0);
      expect(await lock.release()).toBe(true);
      const next = await other.acquire(resource, options);
      expect((next.fence ?? 1) > (lock.fence ?? 0)).toBe(true);
      expect(await next.release()).toBe(true);
    }
  });

  test("several resources of one tag are locked together; of several slots, Redis refuses them", async () => {
    const [holder, other] = [redlock(), redlock()];
    const lock = await holder.acquire(["{order}:1", "{order}:2"]);
    await cluster.moveSlotOf(keyOf("{order}:1"));
    expect(await other.tryAcquire("{order}:2")).toBeNull();
    expect(await lock.extend()).toBeGreaterThan(0);
    expect(await lock.release()).toBe(true);
    await expect(holder.acquire(["a", "b"])).rejects.toThrow(/CROSSSLOT|same (hash )?slot/);
  });
});
