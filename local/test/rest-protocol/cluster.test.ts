import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import {
  type Dialect,
  forceRelease,
  inspect,
  QuorumError,
  Redlock,
  type Runtime,
  systemRuntime,
} from "../../../src/index.ts";
import { patient } from "../../../test/support/beyond-tests.ts";
import { rejection } from "../../../test/support/outcomes.ts";
import { type RedisCluster, startRedisCluster } from "../../../test/support/redis-cluster.ts";
import { redisServer } from "../../../test/support/redis-servers.ts";

describe.runIf(redisServer)("a Redis Cluster of three nodes", () => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await startRedisCluster(redisServer!);
  });
  beforeEach(() => cluster.flush());
  afterAll(() => cluster?.close());

  const client = (dialect: Dialect = "redis", runtime: Runtime = systemRuntime) =>
    new Redlock({
      ...patient,
      runtime,
      endpoints: [{ url: cluster.url, token: cluster.token, dialect }],
      wait: 0,
    });
  const slots = async () => new Set((await cluster.keys()).map(({ slot }) => slot));
  const names = async () => (await cluster.keys()).map(({ key }) => key).sort();

  test("distributes keys over all nodes, and refuses a script across slots", async () => {
    for (let index = 0; index < 30; index++) await client().acquire(`resource-${index}`);
    const keys = await cluster.keys();
    expect(keys).toHaveLength(30);
    expect(new Set(keys.map(({ port }) => port)).size).toBe(3);
    await expect(cluster.execute(["EVAL", "return 1", "2", "a", "b"])).rejects.toThrow(/CROSSSLOT/);
  });

  // Of any name: test/unit/redis/keys.test.ts.
  test.each(["plain", "with a {tag} of its own", "}{", "{}{second}", "{ü 🔒}"])(
    "a resource has all its keys in one slot: %j",
    async (resource) => {
      const redlock = client();
      const first = await redlock.acquire(resource, { fencing: true });
      expect(await redlock.tryAcquire(resource, { fencing: true })).toBeNull();
      expect((await names()).length).toBe(2); // the lock and its counter
      expect((await slots()).size).toBe(1);
      expect(await first.extend()).toBeGreaterThan(0);
      expect(await first.verify()).toBe(true);
      expect((await inspect(redlock, resource)).fence).toBe(first.fence);
      expect(await first.release()).toBe(true);
      const second = await redlock.acquire(resource, { fencing: true });
      expect(second.fence).toBeGreaterThan(first.fence!);
      expect(await forceRelease(redlock, resource)).toBe(true);
      expect(await redlock.tryAcquire(resource)).not.toBeNull();
    },
  );

  test("a rollback leaves its tombstone in the slot of the resource", async () => {
    const resources = ["one {tag}", "two {tag}"];
    const redlock = client();
    await redlock.acquire(resources[1]!);
    // The clock runs a million times too fast: the validity of a lock ends before its acquisition, which is rolled back.
    const hasty = client("redis", { ...systemRuntime, monotonic: () => performance.now() * 1e6 });
    const error = await rejection(hasty.acquire(resources[0]!, { fencing: true }));
    expect(error).toBeInstanceOf(QuorumError);
    expect((await names()).filter((key) => key.includes(":void:"))).toHaveLength(1);
    expect((await slots()).size).toBe(1);
    expect(await redlock.tryAcquire(resources[0]!)).not.toBeNull();
  });

  test("several resources with one tag are acquired together", async () => {
    const resources = ["{order:7}:stock", "{order:7}:invoice", "mail of {order:7}"];
    const redlock = client();
    const lock = await redlock.acquire(resources, { fencing: true });
    expect((await names()).length).toBe(6);
    expect((await slots()).size).toBe(1);
    for (const resource of resources) {
      expect(await redlock.tryAcquire(resource)).toBeNull();
      expect((await inspect(redlock, resource)).fence).toBe(lock.fence);
    }
    expect(await lock.extend()).toBeGreaterThan(0);
    expect(await lock.verify()).toBe(true);
    expect(await lock.release()).toBe(true);
    expect(await redlock.tryAcquire(resources[2]!)).not.toBeNull();
    expect(await redlock.tryAcquire(resources)).toBeNull();
  });

  test("resources in different slots are an error with its reason, and none is acquired", async () => {
    const error = (await rejection(client().acquire(["a", "b", "c"]))) as QuorumError;
    expect(error).toBeInstanceOf(QuorumError);
    expect(error.votes[0]!.cause).toMatchObject({
      kind: "redis",
      message: expect.stringContaining("CROSSSLOT"),
    });
    expect(await names()).toEqual([]);
  });

  test("the script is sent once to each node", async () => {
    const before = cluster.commands.length;
    for (const tag of ["a", "b", "c", "d", "e", "f", "g", "h"]) {
      const lock = await client().acquire(`${tag} of all`, { fencing: true });
      expect(await lock.release()).toBe(true);
    }
    const sent = cluster.commands.slice(before).map(([name]) => name);
    expect(sent.filter((name) => name === "EVAL").length).toBeLessThanOrEqual(3);
  });
});
