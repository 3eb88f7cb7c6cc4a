import { setTimeout as sleep } from "node:timers/promises";
import { Cluster } from "ioredis";
import { createCluster } from "redis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type Endpoint, QuorumError, Redlock } from "../../../src/index.ts";
import { forceRelease, inspect } from "../../../src/inspect/index.ts";
import { ioredisEndpoint, nodeRedisEndpoint } from "../../../src/sockets/index.ts";
import { patient } from "../../support/beyond-tests.ts";
import { newResource } from "../../support/local-endpoints.ts";
import { type RedisCluster, startRedisCluster } from "../../support/redis-cluster.ts";
import { redisServer } from "../../support/redis-servers.ts";
import { forbidUnhandledRejections } from "../../support/unhandled.ts";

// Cluster clients, while slots move to other nodes.

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

  // Of any name: test/unit/redis/keys.test.ts.
  test.each(["plain", "with a {tag} of its own", "}{", "{}{second}", "{ü 🔒}"])(
    "a resource has its lock, its counter and its tombstone in one slot: %j",
    async (resource) => {
      const slots = async () => new Set((await cluster.keys()).map(({ slot }) => slot));
      // The reply to its claim is lost, so the claim is undone with a tombstone.
      const endpoint = open();
      let isLost = false;
      const send: Endpoint["send"] = async (...call) => {
        const reply = await endpoint.send(...call);
        if (isLost) return reply;
        isLost = true;
        throw new Error("the reply is lost");
      };
      const unlucky = redlock({ endpoints: [{ ...endpoint, send }] });
      await expect(unlucky.acquire(resource, { fencing: true })).rejects.toBeInstanceOf(QuorumError);
      expect((await cluster.keys()).filter(({ key }) => key.includes(":void:"))).toHaveLength(1);
      const lock = await redlock().acquire(resource, { fencing: true });
      expect((await slots()).size).toBe(1);
      expect((await inspect(redlock(), resource)).fence).toBe(lock.fence);
      expect(await forceRelease(redlock(), resource)).toBe(true);
      expect(await redlock().tryAcquire(resource)).not.toBeNull();
    },
  );

  test("several resources of one tag are locked together; of several slots, Redis refuses them", async () => {
    const [holder, other] = [redlock(), redlock()];
    const lock = await holder.acquire(["{order}:1", "{order}:2"]);
    await cluster.moveSlotOf(keyOf("{order}:1"));
    expect(await other.tryAcquire("{order}:2")).toBeNull();
    expect(await lock.extend()).toBeGreaterThan(0);
    expect(await lock.release()).toBe(true);
    await expect(holder.acquire(["a", "b"])).rejects.toThrow(/CROSSSLOT|same (hash )?slot/);
  });

  test("contenders never hold a lock together while its slot moves on and on", async () => {
    const resource = newResource();
    let inside = 0;
    let most = 0;
    let turns = 0;
    let isMoving = true;
    const contend = async () => {
      const client = redlock({ wait: Infinity, backoff: { min: 2, max: 20 } });
      while (isMoving) {
        const lock = await client.acquire(resource);
        most = Math.max(most, ++inside);
        await sleep(2);
        inside -= 1;
        turns += 1;
        await lock.release();
      }
    };
    const all = Promise.all(Array.from({ length: 4 }, contend));
    for (let moves = 0; moves < 10 || turns < 10; moves += 1) await cluster.moveSlotOf(keyOf(resource));
    isMoving = false;
    await all;
    expect(most).toBe(1);
  });
});
