import { Redis } from "ioredis";
import { Redis as Redis5 } from "ioredis-5";
import { createSentinel } from "redis";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Endpoint, Redlock } from "../../../src/index.ts";
import { ioredisEndpoint, nodeRedisEndpoint } from "../../../src/sockets/index.ts";
import { patient } from "../../support/beyond-tests.ts";
import { newResource } from "../../support/local-endpoints.ts";
import { primaryName, type RedisSentinel, startRedisSentinel } from "../../support/redis-sentinel.ts";
import { redisServer } from "../../support/redis-servers.ts";
import { forbidUnhandledRejections } from "../../support/unhandled.ts";
import { until } from "../../support/until.ts";

// Clients that ask a sentinel which server is the primary, while the primary dies.

const ignore = () => undefined;

describe.skipIf(!redisServer).each(["ioredis", "ioredis 5, exact", "node-redis"] as const)(
  "%s with Sentinel",
  (via) => {
    forbidUnhandledRejections();
    let servers: RedisSentinel;
    let opened: (() => unknown)[] = [];
    beforeEach(async () => {
      servers = await startRedisSentinel(redisServer!);
    });
    afterEach(async () => {
      for (const close of opened) await close();
      opened = [];
      await servers.close();
    });

    async function open(): Promise<Endpoint> {
      const sentinel = { host: "127.0.0.1", port: servers.port };
      if (via === "node-redis") {
        const client = createSentinel({ name: primaryName, sentinelRootNodes: [sentinel] });
        client.on("error", ignore);
        opened.push(() => client.destroy());
        await client.connect();
        return nodeRedisEndpoint(client);
      }
      const options = { sentinels: [sentinel], name: primaryName };
      const client =
        via === "ioredis" ? new Redis(options) : new Redis5({ ...options, maxRetriesPerRequest: 0 });
      client.on("error", ignore);
      opened.push(() => client.disconnect());
      return ioredisEndpoint(client);
    }
    const redlock = async (options = {}) =>
      new Redlock({ ...patient, endpoints: [await open()], wait: 0, ...options });

    test("is an endpoint, whose replies are exact only if its client sends nothing twice", async () => {
      const { name, exactReplies, subscribe } = await open();
      expect(exactReplies).toBe(via === "ioredis 5, exact");
      expect(name).toMatch(via === "node-redis" ? /^127\.0\.0\.1:\d+$/ : /^mymaster$/);
      expect(subscribe === undefined).toBe(via === "node-redis");
    });

    test.each([
      ["plain", {}],
      ["fenced", { fencing: true }],
    ])("a lock, %s, that the replica has outlives a failover", async (_, options) => {
      const [holder, other] = [await redlock({ timeout: 1_000 }), await redlock({ timeout: 1_000 })];
      const resource = newResource();
      const lock = await holder.acquire(resource, options);
      await servers.replicated();
      await servers.killPrimary();
      // Until the client has found the new primary, calls fail.
      await until(() => lock.verify().catch(ignore), "the client to reach the new primary");
      await until(async () => (await other.tryAcquire(resource).catch(ignore)) === null, "a refusal");
      expect(await lock.extend()).toBeGreaterThan(0);
      expect(await lock.release()).toBe(true);
      const next = await other.acquire(resource, options);
      expect((next.fence ?? 1) > (lock.fence ?? 0)).toBe(true);
      expect(await next.release()).toBe(true);
    });

    test("a call that begins without a primary has its lock from the next one", async () => {
      const client = await redlock({ timeout: 1_000, wait: 50_000 });
      const other = await redlock();
      await (await client.acquire("before")).release();
      const promoted = servers.killPrimary();
      const resource = newResource();
      const lock = await client.acquire(resource);
      await promoted;
      expect(await lock.verify()).toBe(true);
      await until(async () => (await other.tryAcquire(resource).catch(ignore)) === null, "a refusal");
      expect(await lock.release()).toBe(true);
    });
  },
);
