import { afterEach, describe, expect, test } from "vitest";
import { isAlive } from "../../../test/support/is-alive.ts";
import { engines, redisServer } from "../../../test/support/redis-servers.ts";
import {
  type LocalEndpoint,
  type LocalEndpoints,
  type StartOptions,
  start as startLocal,
} from "../../src/index.ts";
import { RedisConnection } from "../../src/rest/redis/connection.ts";

let started: LocalEndpoints[] = [];

afterEach(async () => {
  await Promise.all(started.map((local) => local.close()));
  started = [];
});

async function start(options: StartOptions): Promise<LocalEndpoints & { first: LocalEndpoint }> {
  const local = await startLocal(options);
  started.push(local);
  return { ...local, first: local.endpoints[0]! };
}

async function send(endpoint: LocalEndpoint, command: unknown[], signal?: AbortSignal): Promise<unknown> {
  const response = await fetch(endpoint.url, {
    method: "POST",
    headers: { authorization: `Bearer ${endpoint.token}` },
    body: JSON.stringify(command),
    ...(signal && { signal }),
  });
  return response.json();
}

describe.each(engines)("endpoints on %s", (engine) => {
  test("are independent of each other, with names, URLs and one token", async () => {
    const local = await start({ count: 2, engine });
    expect(local.engine).toBe(engine);
    expect(local.endpoints.map(({ name }) => name)).toEqual(["endpoint-1", "endpoint-2"]);
    const [one, two] = local.endpoints as [LocalEndpoint, LocalEndpoint];
    expect(await send(one, ["SET", "key", "one"])).toEqual({ result: "OK" });
    expect(await send(two, ["GET", "key"])).toEqual({ result: null });
    expect(one.token).toMatch(/^[\w-]{32}$/);
    expect(local.env()).toEqual({
      UPSTASH_REDIS_REST_URL_1: one.url,
      UPSTASH_REDIS_REST_TOKEN_1: one.token,
      UPSTASH_REDIS_REST_URL_2: two.url,
      UPSTASH_REDIS_REST_TOKEN_2: one.token,
    });
  });

  test("have variables without a number if there is only one", async () => {
    const { first, env } = await start({ count: 1, engine, token: "given" });
    expect(env()).toMatchObject({ UPSTASH_REDIS_REST_URL: first.url, UPSTASH_REDIS_REST_TOKEN: "given" });
  });

  test("the log has commands, billed commands and requests, and onLog gets each entry", async () => {
    const seen: string[] = [];
    const { first } = await start({
      count: 1,
      engine,
      onLog: ({ endpoint, command }) => seen.push(`${endpoint} ${command.join(" ")}`),
    });
    await first.execute(["SET", "not", "logged"]);
    await send(first, ["SET", "key", "1"]);
    await send(first, ["INCR", "not"]);
    first.faults.add({ fault: "duplicate" });
    await send(first, ["INCR", "key"]);
    expect(first.log.entries).toMatchObject([
      { command: ["SET", "key", "1"], billed: 1, outcome: "ok" },
      {
        command: ["INCR", "not"],
        billed: 1,
        outcome: "error",
        error: expect.stringMatching(/not an integer/),
      },
      { command: ["INCR", "key"], billed: 1, outcome: "ok" },
      { command: ["INCR", "key"], billed: 1, outcome: "ok" },
    ]);
    expect([first.log.requests, first.log.billed]).toEqual([3, 4]);
    expect(seen).toHaveLength(4);
    expect(seen[0]).toBe("endpoint-1 SET key 1");
    first.log.reset();
    expect([first.log.requests, first.log.billed, first.log.entries.length]).toEqual([0, 0, 0]);
  });

  test.each([
    ["/", ["set", "a", "b"], "SET"],
    ["/set/a/b", undefined, "SET"],
    [
      "/pipeline",
      [
        ["get", "a"],
        ["set", "a", "b"],
      ],
      "GET",
    ],
    ["/multi-exec", [["Del", "a"]], "DEL"],
  ])("a fault of a command hits %s %j, by the first of its names", async (path, body, command) => {
    const { first } = await start({ count: 1, engine });
    const headers = { authorization: `Bearer ${first.token}` };
    const answer = () => fetch(first.url + path, { method: "POST", headers, body: JSON.stringify(body) });
    first.faults.add({ fault: "status", status: 502, html: true, command: `${command}X` });
    expect((await answer()).status).toBe(200);
    first.faults.add({ fault: "status", status: 502, html: true, command });
    const page = await answer();
    expect([page.status, page.headers.get("content-type")]).toEqual([502, "text/html; charset=utf-8"]);
  });
});

describe.runIf(redisServer !== undefined)("the redis-server of an endpoint", () => {
  test("has exited after stop and after close", async () => {
    const { first, endpoints, close } = await start({ count: 2, engine: "redis" });
    const pids = endpoints.map(({ pid }) => pid!);
    expect(pids.every(isAlive)).toBe(true);
    await first.stop();
    expect(first.pid).toBeUndefined();
    expect(pids.map(isAlive)).toEqual([false, true]);
    await close();
    expect(pids.map(isAlive)).toEqual([false, false]);
  });

  test("that crashes is answered with 500, and runs again after stop and start", async () => {
    const { first } = await start({ count: 1, engine: "redis" });
    await send(first, ["SET", "key", "kept"]);
    process.kill(first.pid!, "SIGKILL");
    await expect
      .poll(() => send(first, ["GET", "key"]))
      .toEqual({ error: expect.stringMatching(/cannot be reached/) });
    await first.stop();
    await first.start();
    expect(await send(first, ["GET", "key"])).toEqual({ result: "kept" });
  });

  test("may be a running one, which is neither stopped nor emptied", async () => {
    const owner = await start({ count: 2, engine: "redis" });
    const urls = owner.endpoints.map(({ redisUrl }) => redisUrl!);
    const { first, endpoints, close } = await start({ redis: urls.map((url) => `${url}/1`) });
    expect(endpoints.map(({ redisUrl }) => redisUrl)).toEqual(urls.map((url) => `${url}/1`));
    await send(first, ["SET", "key", "in database 1"]);
    expect(await owner.first.execute(["EXISTS", "key"])).toBe(0);
    await first.stop();
    await expect(first.start({ memory: "lost" })).rejects.toThrow(/not ours to delete/);
    await first.start();
    expect(await send(first, ["GET", "key"])).toEqual({ result: "in database 1" });
    await close();
    const connection = await RedisConnection.open(`${urls[0]}/1`);
    expect(await connection.send([["EXISTS", "key"]])).toEqual([1]);
    connection.close();
  });

  test("is connected again after an outage", async () => {
    const owner = await start({ count: 1, engine: "redis" });
    const { first } = await start({ redis: [owner.first.redisUrl!] });
    await send(first, ["SET", "key", "value"]);
    await owner.first.stop();
    expect(await send(first, ["GET", "key"])).toEqual({ error: expect.stringMatching(/cannot be reached/) });
    await owner.first.start();
    expect(await send(first, ["GET", "key"])).toEqual({ result: "value" });
  });

  test("has no password in errors", async () => {
    const { first } = await start({ redis: ["redis://user:secret-password@127.0.0.1:1"] });
    const answer = JSON.stringify(await send(first, ["PING"]));
    expect(answer).toMatch(/cannot be reached/);
    expect(answer).not.toContain("secret-password");
  });
});
