import { describe, expect, test } from "vitest";
import { isAlive } from "../../../test/support/is-alive.ts";
import { engines, redisServer } from "../../../test/support/redis-servers.ts";
import { type LocalEndpoint, start } from "../../src/index.ts";

async function send({ url, token }: LocalEndpoint, command: unknown[]): Promise<unknown> {
  const headers = { authorization: `Bearer ${token}` };
  return (await fetch(url, { method: "POST", headers, body: JSON.stringify(command) })).json();
}

describe.each(engines)("endpoints on %s", (engine) => {
  test("are independent of each other, with names, URLs and one token", async () => {
    await using local = await start({ count: 2, engine });
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
    await using alone = await start({ count: 1, engine, token: "given" });
    const { url } = alone.endpoints[0];
    expect(alone.env()).toMatchObject({ UPSTASH_REDIS_REST_URL: url, UPSTASH_REDIS_REST_TOKEN: "given" });
  });

  test("the log has commands, billed commands and requests, and onLog gets each entry", async () => {
    const seen: string[] = [];
    const onLog = (entry: { endpoint: string; command: readonly string[] }) =>
      seen.push(`${entry.endpoint} ${entry.command.join(" ")}`);
    await using local = await start({ count: 1, engine, onLog });
    const [first] = local.endpoints;
    await first.execute(["SET", "not", "logged"]);
    await send(first, ["SET", "key", "1"]);
    await send(first, ["INCR", "not"]);
    first.faults.add({ fault: "duplicate" });
    await send(first, ["INCR", "key"]);
    expect(first.log.entries).toMatchObject([
      { command: ["SET", "key", "1"], billed: 1, outcome: "ok" },
      { command: ["INCR", "not"], outcome: "error", error: expect.stringMatching(/not an integer/) },
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
    ["/", '["set","a","b"]', "SET"],
    ["/set/a/b", "", "SET"],
    ["/pipeline", '[["get","a"],["set","a","b"]]', "GET"],
    ["/multi-exec", '[["Del","a"]]', "DEL"],
  ])("a fault of a command hits %s %s, by the first of its names", async (path, body, command) => {
    await using local = await start({ count: 1, engine });
    const [first] = local.endpoints;
    const headers = { authorization: `Bearer ${first.token}` };
    const answer = () => fetch(first.url + path, { method: "POST", headers, body });
    first.faults.add({ fault: "status", status: 502, html: true, command: `${command}X` });
    expect((await answer()).status).toBe(200);
    first.faults.add({ fault: "status", status: 502, html: true, command });
    const page = await answer();
    expect([page.status, page.headers.get("content-type")]).toEqual([502, "text/html; charset=utf-8"]);
  });
});

describe.runIf(redisServer !== undefined)("the redis-server of an endpoint", () => {
  test("has exited after stop and after close", async () => {
    const { endpoints, close } = await start({ count: 2, engine: "redis" });
    const [first] = endpoints;
    const pids = endpoints.map(({ pid }) => pid!);
    expect(pids.every(isAlive)).toBe(true);
    await first.stop();
    expect(first.pid).toBeUndefined();
    expect(pids.map(isAlive)).toEqual([false, true]);
    await close();
    expect(pids.map(isAlive)).toEqual([false, false]);
  });

  test("may be a running one, which is neither stopped nor emptied", async () => {
    await using owner = await start({ count: 2, engine: "redis" });
    const [behind] = owner.endpoints;
    const urls = owner.endpoints.map(({ redisUrl }) => redisUrl!);
    const { endpoints, close } = await start({ redis: urls.map((url) => `${url}/1`) });
    const [first] = endpoints;
    expect(endpoints.map(({ redisUrl }) => redisUrl)).toEqual(urls.map((url) => `${url}/1`));
    await send(first, ["SET", "key", "in database 1"]);
    expect(await behind.execute(["EXISTS", "key"])).toBe(0);
    await first.stop();
    await expect(first.start({ memory: "lost" })).rejects.toThrow(/not ours to delete/);
    await first.start();
    expect(await send(first, ["GET", "key"])).toEqual({ result: "in database 1" });
    // It is connected again after an outage, and has its data.
    await behind.stop();
    expect(await send(first, ["GET", "key"])).toEqual({ error: expect.stringMatching(/cannot be reached/) });
    await behind.start();
    expect(await send(first, ["GET", "key"])).toEqual({ result: "in database 1" });
    await close();
    expect(await behind.execute(["INFO", "keyspace"])).toMatch(/^db1:keys=1,/m);
  });

  test("has no password in errors", async () => {
    await using local = await start({ redis: ["redis://user:secret-password@127.0.0.1:1"] });
    const [first] = local.endpoints;
    const answer = JSON.stringify(await send(first, ["PING"]));
    expect(answer).toMatch(/cannot be reached/);
    expect(answer).not.toContain("secret-password");
  });
});
