import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  type AcquireOptions,
  endpointsFromEnv,
  forceRelease,
  inspect,
  type Lock,
  Redlock,
  type RedlockOptions,
} from "../../../src/index.ts";
import { rejection } from "../../support/outcomes.ts";
import { type RawServer, result, startRawServer } from "../../support/raw-server.ts";

describe("wrong arguments", () => {
  let server: RawServer;
  let redlock: Redlock;
  let lock: Lock;
  beforeAll(async () => {
    server = await startRawServer(() => result("OK"));
    redlock = new Redlock({ endpoints: [{ url: server.url, token: "token" }] });
    lock = await redlock.acquire("resource");
  });
  afterAll(() => server.close());

  /** Fails unless `call` returns a promise that rejects before any request is sent. */
  async function expectRefused(call: () => unknown, type: ErrorConstructor, said: string): Promise<void> {
    const before = server.requests.length;
    const returned = call();
    expect(returned, "a promise, not an exception").toBeInstanceOf(Promise);
    const error = await rejection(returned as Promise<unknown>);
    expect(error).toBeInstanceOf(type);
    expect((error as Error).message).toContain(said);
    expect(server.requests.length).toBe(before);
  }

  const options: [AcquireOptions, typeof TypeError | typeof RangeError, string][] = [
    [{ ttl: 9 }, RangeError, "ttl (ms) must be between 10 and 2147483647, got 9"],
    [{ ttl: 10.5 }, RangeError, "ttl (ms) must be an integer, got 10.5"],
    [{ ttl: Number.NaN }, RangeError, "got NaN"],
    [{ ttl: Infinity }, RangeError, "got Infinity"],
    [{ ttl: "10s" as never }, TypeError, 'ttl (ms) must be a number, got "10s"'],
    [{ ttl: true as never }, TypeError, "ttl (ms) must be a number"],
    [{ wait: -1 }, RangeError, "wait (ms) must be between 0 and Infinity, got -1"],
    [{ timeout: 0 }, RangeError, "timeout (ms) must be between 1 and 2147483647, got 0"],
    [{ driftFactor: 0.6 }, RangeError, "driftFactor must be between 0 and 0.5, got 0.6"],
    [{ backoff: { min: 0 } }, RangeError, "backoff.min (ms) must be between 1"],
    [{ backoff: { min: 50, max: 20 } }, RangeError, "got 20"],
    [{ fencing: "yes" as never }, TypeError, 'fencing must be a boolean, got "yes"'],
    [{ fenceRetention: 5 }, RangeError, "got 5"],
    [{ prefix: "" }, RangeError, "has 0"],
    [{ prefix: "{a}" }, RangeError, 'got "{a}"'],
    [{ waitUntil: {} as never }, TypeError, "waitUntil"],
    [{ autoExtend: "no" as never }, TypeError, 'autoExtend must be a boolean, got "no"'],
    [{ maxHold: -5 }, RangeError, "maxHold (ms) must be between 0 and Infinity, got -5"],
    [{ onEvent: "hook" as never }, TypeError, 'onEvent must be a function, got "hook"'],
    [{ signal: {} as never }, TypeError, "signal"],
    [{ token: "me" } as never, TypeError, "it belongs to ReentrantLock, as owner"],
    [
      { deadline: Number.NaN },
      RangeError,
      "deadline (ms since 1970) must be between 0 and Infinity, got NaN",
    ],
    // If it were accepted, it would look like an outage: no request is granted in time.
    [{ deadline: 25_000 }, RangeError, "it is a time such as Date.now() + 5_000"],
  ];

  test.each(options)("%o", async (given, type, said) => {
    await expectRefused(() => redlock.acquire("a", given), type, said);
    // It ignores `wait`: it runs one round.
    if (given.wait === undefined) await expectRefused(() => redlock.tryAcquire("a", given), type, said);
    let runs = 0;
    await expectRefused(() => redlock.using("a", given, () => runs++), type, said);
    expect(runs).toBe(0);
    const [name = ""] = Object.keys(given);
    if (["signal", "deadline"].includes(name)) return;
    await expectRefused(() => inspect(redlock, "a", given), type, said);
    await expectRefused(() => forceRelease(redlock, "a", given), type, said);
    // The client's own defaults are checked when it is made.
    const make = () => new Redlock({ ...given, endpoints: [{ url: server.url, token: "token" }] });
    expect(make).toThrow(type);
    expect(make).toThrow(said);
  });

  test.each<[unknown, typeof TypeError | typeof RangeError, string]>([
    ["", RangeError, "has 0"],
    ["x".repeat(1_025), RangeError, "has 1025"],
    [[], RangeError, "got 0"],
    [Array.from({ length: 101 }, (_, index) => `r${index}`), RangeError, "got 101"],
    [5, TypeError, "resource must be a string"],
    [null, TypeError, "got null"],
    [undefined, TypeError, "is missing"],
    [["a", 5], TypeError, "resource must be a string"],
    [["a", ""], RangeError, "has 0"],
  ])("the resource %o", async (resource, type, said) => {
    const name = resource as string;
    await expectRefused(() => redlock.acquire(name), type, said);
    await expectRefused(() => redlock.tryAcquire(name), type, said);
    await expectRefused(() => redlock.using(name, () => 1), type, said);
    // Each of these has a state of its own: `forceRelease` would free the first only.
    const [only, why] = Array.isArray(resource) ? [TypeError, "resource must be one name"] : [type, said];
    await expectRefused(() => inspect(redlock, name), only, why);
    await expectRefused(() => forceRelease(redlock, name), only, why);
  });

  test("of a lock", async () => {
    await expectRefused(() => lock.extend(9), RangeError, "got 9");
    await expectRefused(() => lock.extend(10.5), RangeError, "got 10.5");
    await expectRefused(() => lock.extend("1s" as never), TypeError, 'got "1s"');
    await expectRefused(() => redlock.using("a", {} as never), TypeError, "routine");
    expect(lock.remaining()).toBeGreaterThan(0);
    expect(lock.ttl).toBe(10_000);
  });

  test.each<[string, unknown]>([
    ["no endpoint", []],
    ["no list", undefined],
    ["null", [null]],
    ["a string", ["https://host.upstash.io"]],
    ["no url", [{ token: "token" }]],
    ["no token", [{ url: "https://host" }]],
    ["another dialect", [{ url: "https://host", token: "token", dialect: "valkey" }]],
  ])("endpoints: %s", (_, endpoints) => {
    expect(() => new Redlock({ endpoints } as RedlockOptions)).toThrow(TypeError);
  });

  test("the same endpoint twice", () => {
    const twice = [
      { url: "https://host.upstash.io", token: "one" },
      { url: "https://host.upstash.io/", token: "two" },
    ];
    expect(() => new Redlock({ endpoints: twice })).toThrow(RangeError);
    expect(() => new Redlock({ endpoints: twice })).toThrow("host.upstash.io");
  });
});

describe("defaults and overrides", () => {
  test("undefined never erases a default", async () => {
    const server = await startRawServer(() => result("OK"));
    try {
      const given = { ttl: 20_000, prefix: "mine", wait: 0, timeout: 800, fencing: false, autoExtend: false };
      const redlock = new Redlock({
        endpoints: [{ url: server.url, token: "token", name: undefined, dialect: undefined }],
        ...given,
        backoff: undefined,
        runtime: undefined,
      });
      const nothing = {
        ...Object.fromEntries(Object.keys(given).map((name) => [name, undefined])),
        signal: undefined,
        deadline: undefined,
        onEvent: undefined,
        waitUntil: undefined,
      };
      const lock = await redlock.acquire("a", nothing);
      expect(lock.ttl).toBe(20_000);
      await redlock.tryAcquire("a", nothing);
      await redlock.using("a", nothing, (held) => held.ttl);
      const acquires = server.requests.map(({ command }) => command).filter(([name]) => name === "SET");
      expect(acquires).toHaveLength(3);
      for (const acquire of acquires) {
        expect(acquire).toEqual(["SET", "mine:lock:{a}", expect.any(String), "NX", "PX", "20000"]);
      }
      expect((await redlock.acquire("b", { ttl: 500, prefix: "theirs" })).ttl).toBe(500);
      expect(server.requests.at(-1)!.command[1]).toBe("theirs:lock:{b}");
    } finally {
      await server.close();
    }
  });

  test("endpointsFromEnv prefers numbered variables, then plain ones, then Vercel's", async () => {
    const servers = await Promise.all([1, 2, 3].map(() => startRawServer(() => result("OK"))));
    const [first, second, third] = servers.map(({ url }) => url);
    const arrived = () => servers.map(({ requests }) => requests.map(({ headers }) => headers.authorization));
    const clear = () => {
      for (const { requests } of servers) (requests as unknown[]).length = 0;
    };
    try {
      const vercel = { KV_REST_API_URL: third, KV_REST_API_TOKEN: "three", OTHER: 5 };
      const plain = { UPSTASH_REDIS_REST_URL: first, UPSTASH_REDIS_REST_TOKEN: "one" };
      const numbered = {
        UPSTASH_REDIS_REST_URL_1: first,
        UPSTASH_REDIS_REST_TOKEN_1: "one",
        UPSTASH_REDIS_REST_URL_2: second,
        UPSTASH_REDIS_REST_TOKEN_2: "two",
        UPSTASH_REDIS_REST_URL_10: third,
        UPSTASH_REDIS_REST_TOKEN_10: "three",
      };
      await new Redlock({ endpoints: endpointsFromEnv(vercel) }).acquire("a");
      expect(arrived()).toEqual([[], [], ["Bearer three"]]);
      clear();
      await new Redlock({ ttl: 3_000, endpoints: endpointsFromEnv({ ...vercel, ...plain }) }).acquire("a");
      expect(arrived()).toEqual([["Bearer one"], [], []]);
      expect(servers[0]!.requests[0]!.command.at(-1)).toBe("3000");
      clear();
      await new Redlock({ endpoints: endpointsFromEnv({ ...vercel, ...plain, ...numbered }) }).acquire("a");
      expect(arrived()).toEqual([["Bearer one"], ["Bearer two"], ["Bearer three"]]);
      const { UPSTASH_REDIS_REST_TOKEN_2: _, ...incomplete } = numbered;
      expect(() => new Redlock({ endpoints: endpointsFromEnv(incomplete) })).toThrow(
        "UPSTASH_REDIS_REST_TOKEN_2",
      );
      expect(() => new Redlock({ endpoints: endpointsFromEnv({}) })).toThrow("UPSTASH_REDIS_REST_URL");
      expect(() => new Redlock({ endpoints: endpointsFromEnv({}) })).toThrow(TypeError);
    } finally {
      await Promise.all(servers.map((server) => server.close()));
    }
  });
});
