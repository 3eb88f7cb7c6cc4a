import { Redis } from "ioredis";
import { createClient, createClientPool, RESP_TYPES } from "redis";
import { describe, expect, test } from "vitest";
import { type Endpoint, QuorumError, Redlock, upstashEndpoint } from "../../../src/index.ts";
import { ioredisEndpoint, nodeRedisEndpoint } from "../../../src/sockets/index.ts";
import { pubSub } from "../../../src/wake-up/index.ts";
import { patient } from "../../support/beyond-tests.ts";
import { newResource, sdkClient } from "../../support/local-endpoints.ts";
import { rejection } from "../../support/outcomes.ts";
import { ownTime } from "../../support/own-time.ts";
import { redisServer } from "../../support/redis-servers.ts";
import { proxiedServer, type SocketClient } from "../../support/sockets.ts";
import { forbidUnhandledRejections } from "../../support/unhandled.ts";
import { until } from "../../support/until.ts";

// Endpoints over clients with sockets, through a proxy in front of a real server. What holds for all endpoints is in
// sockets-contract.test.ts.

const clients: SocketClient[] = ["ioredis", "ioredis 5, exact", "node-redis"];
const any = (value: unknown): never => value as never;
const ignore = () => undefined;

describe.skipIf(!redisServer)("over sockets", () => {
  forbidUnhandledRejections();
  const at = proxiedServer();
  const open = (via: SocketClient) => at.open(via);
  /** A client of ioredis, or of node-redis, of the test's own. */
  function ioredis(options: object): Redis {
    const client = new Redis(at.proxy.port, "127.0.0.1", { retryStrategy: () => 20, ...options });
    client.on("error", ignore);
    at.opened.push(() => client.disconnect());
    return client;
  }
  function nodeRedis(options: object = {}) {
    const client = createClient({ socket: { host: "127.0.0.1", port: at.proxy.port }, ...options });
    client.on("error", ignore).connect().catch(ignore);
    at.opened.push(() => client.destroy());
    return client;
  }
  const keys = async () => ((await at.direct.call("KEYS", "*:lock:*")) as string[]).length;
  /** How often the server has executed these commands, those inside scripts as well. */
  const executed = async (name: string) => {
    const stats = String(await at.direct.call("INFO", "commandstats"));
    return Number(new RegExp(`cmdstat_${name}:calls=(\\d+)`).exec(stats)?.[1] ?? 0);
  };
  const redlockOf = (endpoint: Endpoint, options = {}) =>
    new Redlock({ ...patient, endpoints: [endpoint], wait: 0, ...options });
  /** Breaks the connections, and waits until commands are no longer kept for the next one. */
  async function breakOff(endpoint: Endpoint): Promise<void> {
    at.proxy.down(true);
    await until(async () => {
      const error = await rejection(endpoint.send(["PING"], AbortSignal.abort()));
      return String(error).includes("not connected");
    }, "the client to notice");
  }
  /** What comes of an acquire whose connection breaks before its reply. */
  async function acquiredWithoutReply(endpoint: Endpoint): Promise<unknown> {
    await (await redlockOf(endpoint).acquire("before")).release();
    at.proxy.loses = "replies";
    const acquired = redlockOf(endpoint)
      .acquire("a")
      .catch((error: unknown) => error);
    await until(async () => (await keys()) === 1, "the lock to be stored");
    at.proxy.loses = undefined;
    at.proxy.down(true);
    at.proxy.down(false);
    return acquired;
  }
  const causeOf = (error: unknown) => (error as QuorumError).votes[0]!.cause!;

  describe.each(clients)("%s", (via) => {
    test("an error of Redis is one, without secrets; a broken connection is none", async () => {
      const endpoint = open(via);
      const signal = new AbortController().signal;
      const refused = await rejection(endpoint.send(["EVALSHA", "0".repeat(40), 0], signal));
      expect(refused).toMatchObject({ kind: "redis", message: expect.stringContaining("NOSCRIPT") });
      const unknown = await rejection(endpoint.send(["NO-SUCH", "a-secret-token"], signal));
      expect(unknown).toMatchObject({ kind: "redis", message: expect.stringContaining("ERR unknown") });
      expect(String(unknown)).not.toContain("a-secret-token");
      const syntax = endpoint.send(["SET", "k", "v", "PX"], signal);
      expect(await rejection(syntax)).toMatchObject({ message: expect.stringContaining("syntax error") });
      at.proxy.down(true);
      const broken = await rejection(redlockOf(open(via)).acquire("a"));
      expect(broken).toBeInstanceOf(QuorumError);
      expect(causeOf(broken)).toMatchObject({
        kind: "network",
        message: expect.stringContaining("not connected"),
      });
    });

    test("while the client is offline, commands fail soon and are never executed", async () => {
      const endpoint = open(via);
      await (await redlockOf(endpoint).acquire("before")).release();
      await at.direct.call("CONFIG", "RESETSTAT");
      await breakOff(endpoint);
      for (let call = 0; call < 3; call += 1) {
        // In its own time the timeout never comes.
        const error = await rejection(redlockOf(endpoint, { runtime: ownTime() }).acquire(newResource()));
        expect(causeOf(error).kind).toBe("network");
      }
      at.proxy.down(false);
      await until(async () => {
        const lock = await redlockOf(endpoint)
          .tryAcquire("after")
          .catch(() => null);
        return lock?.release();
      }, "the client to connect again");
      // Only what came after the failures.
      expect(await keys()).toBe(0);
      expect(await executed("set")).toBe(1);
    });

    test("what a client that never connects was given has not been sent", async () => {
      at.proxy.loses = "replies";
      const error = await rejection(redlockOf(open(via), { timeout: 60 }).acquire("a"));
      expect(causeOf(error)).toMatchObject({
        kind: "timeout",
        message: expect.stringContaining("not sent in time: the client is not connected"),
      });
    });

    test("a client within MULTI is an error that says so, not another holder", async () => {
      const endpoint = open(via);
      const { signal } = new AbortController();
      expect(await endpoint.send(["MULTI"], signal)).toBe("OK");
      for (const fencing of [false, true]) {
        const error = await rejection(redlockOf(endpoint, { fencing, wait: 300 }).acquire("a"));
        expect(error).toBeInstanceOf(QuorumError);
        expect(causeOf(error).message).toContain("within MULTI: give the endpoint its own client");
      }
      await endpoint.send(["DISCARD"], signal);
      expect(await redlockOf(endpoint).tryAcquire("a")).not.toBeNull();
    });

    test("a connection that breaks before the reply leaves one holder, or none", async () => {
      const lock = await acquiredWithoutReply(open(via));
      if (via === "ioredis") {
        // Sent again: the script finds what it has stored.
        expect(await (lock as Awaited<ReturnType<Redlock["acquire"]>>).verify()).toBe(true);
        expect(await redlockOf(open(via)).tryAcquire("a")).toBeNull();
      } else {
        expect(causeOf(lock).kind).toBe("network");
        await until(async () => (await keys()) === 0, "the rollback");
      }
    });

    test("a stream ends when its connection breaks, and the next one has another", async () => {
      const { subscribe } = open(via);
      const { signal } = new AbortController();
      const read = async (reader: ReadableStreamDefaultReader<Uint8Array>) =>
        new TextDecoder().decode((await reader.read()).value);
      for (let time = 0; time < 2; time += 1) {
        const reader = (await subscribe!("news", signal)).getReader();
        expect(await read(reader)).toBe("data: subscribe,news,1\n\n");
        await at.direct.call("PUBLISH", "news", "3");
        expect(await read(reader)).toBe("data: message,news,3\n\n");
        await at.direct.call("CLIENT", "KILL", "TYPE", "pubsub");
        expect((await reader.read()).done).toBe(true);
      }
      const leaver = new AbortController();
      const left = (await subscribe!("news", leaver.signal)).getReader();
      leaver.abort();
      await read(left);
      expect((await left.read()).done).toBe(true);
      const other = new AbortController();
      await (await subscribe!("news", other.signal)).cancel();
      other.abort();
      await until(
        async () => !String(await at.direct.call("CLIENT", "LIST", "TYPE", "pubsub")),
        "no subscription",
      );
    });
  });

  test("replies are exact where a client cannot send a command twice", () => {
    const options: [object, boolean][] = [
      [{}, false],
      [{ maxRetriesPerRequest: null }, false],
      [{ maxRetriesPerRequest: 1 }, false],
      [{ maxRetriesPerRequest: 0 }, true],
      [{ autoResendUnfulfilledCommands: false }, true],
      [{ maxRetriesPerRequest: 0, reconnectOnError: () => 2 }, false],
    ];
    for (const [given, exact] of options) {
      expect(ioredisEndpoint(ioredis(given)).exactReplies).toBe(exact);
    }
    expect(nodeRedisEndpoint(nodeRedis()).exactReplies).toBe(true);
  });

  test("ioredis without autoResendUnfulfilledCommands fails what it would forget", async () => {
    const endpoint = ioredisEndpoint(ioredis({ autoResendUnfulfilledCommands: false }));
    expect(causeOf(await acquiredWithoutReply(endpoint)).kind).toBe("network");
    await until(async () => (await keys()) === 0, "the rollback");
  });

  test.each<[string, () => Endpoint]>([
    ["a lazy ioredis client", () => ioredisEndpoint(ioredis({ lazyConnect: true }))],
    ["one that may read from replicas", () => ioredisEndpoint(ioredis({ readOnly: true }))],
    ["one that prefixes keys", () => ioredisEndpoint(ioredis({ keyPrefix: "app:" }))],
    [
      "node-redis that maps texts to Buffers",
      () => nodeRedisEndpoint(nodeRedis().withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer })),
    ],
    [
      "node-redis that maps numbers to texts",
      () =>
        nodeRedisEndpoint(nodeRedis({ commandOptions: { typeMapping: { [RESP_TYPES.NUMBER]: String } } })),
    ],
    ["node-redis without a queue", () => nodeRedisEndpoint(nodeRedis({ disableOfflineQueue: true }))],
  ])("%s works", async (_, make) => {
    const redlock = redlockOf(make(), { fencing: true, wakeUp: pubSub });
    const lock = await redlock.acquire(["a", "b"]);
    expect(await redlock.tryAcquire("a")).toBeNull();
    expect(await keys()).toBe(2);
    const waiting = redlock.acquire("b", { wait: 10_000 });
    await until(async () => (await executed("subscribe")) === 1, "the subscription");
    expect(await lock.extend()).toBeGreaterThan(0);
    expect(await lock.release()).toBe(true);
    expect(await (await waiting).release()).toBe(true);
  });

  test("a pool of node-redis is used by many, has no streams, and drops what was given up", async () => {
    const socket = { host: "127.0.0.1", port: at.proxy.port, reconnectStrategy: 20 };
    const pool = createClientPool({ socket }, { minimum: 1, maximum: 2 });
    pool.on("error", ignore);
    const endpoint = nodeRedisEndpoint(pool);
    expect(endpoint).toMatchObject({ name: "node-redis", exactReplies: true });
    expect(endpoint.subscribe).toBeUndefined();
    const unconnected = await rejection(redlockOf(endpoint).acquire("a"));
    expect(causeOf(unconnected).message).toContain("was never connected");
    await pool.connect();
    at.opened.push(() => pool.destroy());
    const redlock = redlockOf(endpoint, { fencing: true, wakeUp: pubSub });
    const locks = await Promise.all(Array.from({ length: 30 }, () => redlock.acquire(newResource())));
    expect(await Promise.all(locks.map((lock) => lock.release()))).not.toContain(false);

    await at.direct.call("CONFIG", "RESETSTAT");
    at.proxy.down(true);
    for (let call = 0; call < 5; call += 1) {
      const error = await rejection(redlockOf(endpoint, { timeout: 60 }).acquire(newResource()));
      expect(error).toBeInstanceOf(QuorumError);
    }
    at.proxy.down(false);
    await until(() => redlockOf(endpoint).tryAcquire("after").catch(ignore), "the pool to connect again");
    expect(await keys()).toBe(1);
    expect(await executed("set")).toBe(1);
  });

  test("many endpoints of one client add no more listeners, and a closed client fails at once", async () => {
    const io = ioredis({});
    const node = nodeRedis();
    for (let time = 0; time < 20; time += 1) {
      ioredisEndpoint(io);
      nodeRedisEndpoint(node);
    }
    expect([io.listenerCount("ready"), node.listenerCount("ready")]).toEqual([1, 1]);
    const redlocks = [redlockOf(ioredisEndpoint(io)), redlockOf(nodeRedisEndpoint(node))];
    for (const redlock of redlocks) await (await redlock.acquire("a")).release();
    io.disconnect();
    await node.close();
    for (const redlock of redlocks) {
      const error = await rejection(redlock.acquire("a"));
      expect(causeOf(error).message).toContain("the client is closed");
    }
    at.opened.splice(0);
  });

  test("are named after the server, without its password", () => {
    const url = "redis://user:secret-word@eu1-some-name.upstash.io:6380/2";
    const io = new Redis(url, { lazyConnect: true });
    const named = { name: "eu1-some-name.upstash.io:6380", dialect: "upstash" };
    expect(ioredisEndpoint(io)).toMatchObject(named);
    expect(nodeRedisEndpoint(createClient({ url }))).toMatchObject(named);
    expect(ioredisEndpoint(new Redis({ path: "/run/redis.sock", lazyConnect: true })).name).toBe(
      "/run/redis.sock",
    );
    expect(nodeRedisEndpoint(createClient({ url }), { name: "eu", dialect: "redis" })).toMatchObject({
      name: "eu",
      dialect: "redis",
    });
    const twice = () =>
      new Redlock({ endpoints: [ioredisEndpoint(io), nodeRedisEndpoint(createClient({ url }))] });
    expect(twice).toThrow(RangeError);
  });

  test("another client is refused, with the function that takes it, and without a secret", () => {
    const io = new Redis({ lazyConnect: true });
    const node = createClient();
    const upstash = sdkClient({ url: "https://a.upstash.io", token: "secret-word" });
    const url = "redis://user:secret-word@a.example";
    const refused: [() => unknown, string][] = [
      [() => ioredisEndpoint(any(node)), "nodeRedisEndpoint(client)"],
      [() => ioredisEndpoint(any(upstash)), "upstashEndpoint(client)"],
      [() => ioredisEndpoint(any(url)), "ioredisEndpoint(new Redis(url))"],
      [() => ioredisEndpoint(any(undefined)), "a client of ioredis"],
      [() => ioredisEndpoint(new Redis({ lazyConnect: true, stringNumbers: true })), "stringNumbers: false"],
      [() => ioredisEndpoint(new Redis({ lazyConnect: true, role: "slave" })), 'role: "master"'],
      [() => ioredisEndpoint(io, any({ nmae: "a" })), "did you mean name?"],
      [() => nodeRedisEndpoint(any(io)), "ioredisEndpoint(client)"],
      [() => nodeRedisEndpoint(any(upstash)), "upstashEndpoint(client)"],
      [() => nodeRedisEndpoint(any(url)), "createClient({ url })"],
      [() => nodeRedisEndpoint(any(Promise.resolve(node))), "got Promise"],
      [() => nodeRedisEndpoint(any({ withTypeMapping: ignore, isReady: true })), "node-redis 5"],
      [() => nodeRedisEndpoint(any({ sendCommand: ignore, isReady: true })), "node-redis 5"],
      [() => upstashEndpoint(any(io)), "a client of @upstash/redis"],
    ];
    for (const [call, text] of refused) {
      expect(call).toThrow(TypeError);
      expect(call).toThrow(text);
      expect(call).not.toThrow("secret-word");
    }
    expect(() => nodeRedisEndpoint(node, any({ dialect: "valkey" }))).toThrow(
      /dialect must be .*got "valkey"/,
    );
  });
});
