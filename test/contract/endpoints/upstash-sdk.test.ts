import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { Redlock, upstashEndpoint } from "../../../src/index.ts";
import { patient } from "../../support/beyond-tests.ts";
import { type Gateway, startGateway } from "../../support/gateway.ts";
import { type Local, newResource, openLocal, sdkClient } from "../../support/local-endpoints.ts";
import { bestEngine } from "../../support/redis-servers.ts";
import { forbidUnhandledRejections } from "../../support/unhandled.ts";

type SdkOptions = Parameters<typeof sdkClient>[1];

const kinds = [
  ["plain", {}],
  ["fenced", { fencing: true }],
] as const;

// What the SDK sends does not depend on the engine.
describe.each([bestEngine])("the @upstash/redis client in front of %s", (engine) => {
  forbidUnhandledRejections();
  let local: Local;
  let gateway: Gateway;
  beforeAll(async () => {
    local = await openLocal({ engine, count: 1 });
  });
  beforeEach(async () => {
    await gateway?.close();
    gateway = await startGateway(local.endpoints[0]!);
    await local.reset();
  });
  afterAll(async () => {
    await gateway?.close();
    await local.close();
  });

  /** A lock client over an SDK client with these options, through the gateway. */
  function clientOf(options: SdkOptions = {}): Redlock {
    const { token } = local.endpoints[0]!;
    const redis = sdkClient({ url: gateway.url, token }, options);
    const endpoints = [upstashEndpoint(redis)];
    return new Redlock({ ...patient, endpoints, wait: 0 });
  }
  const retrying: SdkOptions = { retry: { retries: 3, backoff: () => 3 } };

  describe.each(kinds)("%s", (_, options) => {
    test("a lost reply and the SDK's retry still acquire the lock", async () => {
      const resource = newResource();
      let lost = 0;
      gateway.after = () => (lost++ < 2 ? "lost" : undefined);
      const lock = await clientOf(retrying).acquire(resource, options);
      expect(gateway.executed).toHaveLength(3);
      expect(await lock.verify()).toBe(true);
      lost = 0;
      expect(await lock.extend(60_000)).toBeGreaterThan(50_000);
      expect(await clientOf().tryAcquire(resource)).toBeNull();
      lost = 1;
      await lock.release();
      await local.gone(resource);
    });
  });

  test.each<[string, SdkOptions]>([
    ["enableAutoPipelining", { enableAutoPipelining: true }],
    ["responseEncoding false", { responseEncoding: false }],
    ["automaticDeserialization false", { automaticDeserialization: false }],
  ])("%s: many locks at once, each with its own answer", async (_, options) => {
    const redlock = clientOf(options);
    await local.endpoints[0]!.execute(["SCRIPT", "FLUSH"]);
    const resources = Array.from({ length: 25 }, (_, index) => newResource(`${index}`));
    const [held] = resources;
    await local.redlock().acquire(held!);
    const locks = await Promise.all(
      resources.map((resource, index) =>
        redlock.tryAcquire(resource, {
          fencing: index % 2 === 0,
        }),
      ),
    );
    expect(locks[0]).toBeNull();
    for (const [index, lock] of locks.entries()) {
      if (!lock) continue;
      expect(lock.resources).toEqual([resources[index]]);
      expect(lock.fence === undefined).toBe(index % 2 === 1);
      expect((await local.values(resources[index]!))[0]).toContain(lock.token);
    }
    const rest = locks.slice(1).map((lock) => lock!);
    expect(new Set(await Promise.all(rest.map((lock) => lock.verify())))).toEqual(new Set([true]));
    await Promise.all(rest.map((lock) => lock.extend()));
    // One of the locks is lost. That must not change the replies to the others in the same pipeline.
    await local.remove(resources[5]!);
    const released = await Promise.all(rest.map((lock) => lock.release()));
    expect(released.map((freed, index) => (freed ? -1 : index)).filter((index) => index >= 0)).toEqual([4]);
  });

  test("is named by its host, refused as a duplicate, and refused without upstashEndpoint", async () => {
    const { url, token } = local.endpoints[0]!;
    const redis = sdkClient({ url, token });
    const endpoint = upstashEndpoint(redis);
    expect(endpoint).toMatchObject({ name: new URL(url).host, dialect: "redis" });
    const again = upstashEndpoint(sdkClient({ url, token }));
    expect(() => new Redlock({ endpoints: [endpoint, again] })).toThrow(RangeError);
    // @ts-expect-error A client is no endpoint.
    expect(() => new Redlock({ endpoints: [redis] })).toThrow(/wrap .*: upstashEndpoint\(client\)/);
    const upstash = sdkClient({ url: "https://eu1-some-name.upstash.io", token });
    expect(upstashEndpoint(upstash)).toMatchObject({ name: "eu1-some-name.upstash.io", dialect: "upstash" });
    expect(upstashEndpoint(upstash, { name: "eu", dialect: "redis" })).toMatchObject({
      name: "eu",
      dialect: "redis",
    });
    expect(upstashEndpoint(sdkClient({ url, token }, { enableAutoPipelining: true })).name).toBe(
      new URL(url).host,
    );
  });
});
