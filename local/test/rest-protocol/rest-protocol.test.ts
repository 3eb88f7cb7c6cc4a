import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { eachEngine } from "../../../test/support/each-engine.ts";
import { engines } from "../../../test/support/redis-servers.ts";
import { type LocalEndpoint, type LocalEndpoints, start } from "../../src/index.ts";

eachEngine(engines)("REST protocol on %s", (engine) => {
  let local: LocalEndpoints;
  let endpoint: LocalEndpoint;

  beforeAll(async () => {
    local = await start({ count: 1, engine, token: "full", readOnlyToken: "reader" });
    endpoint = local.endpoints[0]!;
  });
  beforeEach(async () => {
    await endpoint.execute(["FLUSHALL"]);
    endpoint.log.reset();
  });
  afterAll(() => local.close());

  /** Sends one HTTP request with the full token. Returns the body as text and, if it is JSON, parsed. */
  async function request(path: string, init: RequestInit = {}) {
    const response = await fetch(endpoint.url + path, {
      ...init,
      headers: { authorization: "Bearer full", ...init.headers },
    });
    const text = await response.text();
    const isJson = text !== "" && response.headers.get("content-type")?.includes("json");
    const json = isJson ? JSON.parse(text) : undefined;
    return { status: response.status, headers: response.headers, text, json };
  }
  const post = (value: unknown, path = "/", headers: Record<string, string> = {}) =>
    request(path, {
      method: "POST",
      body: typeof value === "string" ? value : JSON.stringify(value),
      headers,
    });

  test("base64 encodes every string except OK as a whole reply", async () => {
    const base64 = { "upstash-encoding": "base64" };
    expect((await post(["SET", "key", "bar"], "/", base64)).json).toEqual({ result: "OK" });
    expect((await post(["GET", "key"], "/", base64)).json).toEqual({ result: "YmFy" });
    expect((await post(["INCR", "n"], "/", base64)).json).toEqual({ result: 1 });
    await post(["SET", "ok", "OK"]);
    expect((await post(["MGET", "ok", "none"], "/", base64)).json).toEqual({ result: ["T0s=", null] });
    expect(
      (
        await post(
          [
            ["SET", "key", 1],
            ["GET", "key"],
          ],
          "/pipeline",
          base64,
        )
      ).json,
    ).toEqual([{ result: "OK" }, { result: "MQ==" }]);
  });

  test("keeps a byte order mark, which the SDK removes", async () => {
    await post(["SET", "key", "\ufeffvalue"]);
    expect((await post(["GET", "key"])).json).toEqual({ result: "\ufeffvalue" });
    expect(await endpoint.execute(["GET", "key"])).toBe("\ufeffvalue");
  });

  test("accepts a command in the path, with every method", async () => {
    expect((await request("/set/foo/bar/PX/100000")).json).toEqual({ result: "OK" });
    expect((await request("/get/foo", { method: "PUT" })).json).toEqual({ result: "bar" });
    expect((await request("/GET/foo/", { method: "POST" })).json).toEqual({ result: "bar" });
    const head = await request("/get/foo", { method: "HEAD" });
    expect([head.status, head.text]).toEqual([200, ""]);
    expect((await request("/set/a%2Fb/%C3%BC%20%2B")).status).toBe(200);
    expect(await endpoint.execute(["GET", "a/b"])).toBe("ü +");
  });

  test("appends the body and then the query to a command in the path", async () => {
    expect((await post('{"json":true}', "/set/foo?PX=100000&_token=full")).json).toEqual({ result: "OK" });
    expect(await endpoint.execute(["GET", "foo"])).toBe('{"json":true}');
    expect(await endpoint.execute(["PTTL", "foo"])).toBeGreaterThan(0);
    expect((await post("other", "/set/foo?NX")).json).toEqual({ result: null });
    expect(endpoint.log.entries.at(-1)?.command).toEqual(["set", "foo", "other", "NX"]);
  });

  test("accepts the token in the query", async () => {
    const response = await fetch(`${endpoint.url}/ping?_token=full`);
    expect(await response.json()).toEqual({ result: "PONG" });
  });

  test("answers 401 without a valid token, and executes nothing", async () => {
    for (const headers of [{}, { authorization: "Bearer wrong" }, { authorization: "Bearer " }]) {
      const response = await fetch(`${endpoint.url}/set/key/value`, { headers });
      expect(response.status).toBe(401);
      expect(await response.json()).toEqual({ error: "WRONGPASS invalid or missing auth token" });
    }
    expect(await endpoint.execute(["EXISTS", "key"])).toBe(0);
  });

  test("answers 405 to other methods", async () => {
    for (const method of ["DELETE", "PATCH", "OPTIONS"]) {
      const { status, headers, json } = await request("/get/foo", { method });
      expect(status).toBe(405);
      expect(headers.get("allow")).toBe("HEAD, GET, POST, PUT");
      expect(json).toEqual({ error: expect.stringContaining(method) });
    }
  });

  test("answers 400 to an invalid command", async () => {
    const bad: [unknown, RegExp][] = [
      ["", /^ERR empty body/],
      ["{not json", /^ERR the body is not JSON/],
      ['{"a":1}', /^ERR the body must be a JSON array/],
      [[], /^ERR empty command/],
      [["SET", "key", null], /^ERR null args are not supported/],
      [["SET", "key", {}], /^ERR unsupported arg type/],
      [["NOSUCH", "key"], /^ERR unknown command/],
      [["EVAL", "return 1"], /^ERR wrong number of arguments for 'eval' command/],
      [["GET"], /^ERR wrong number of arguments for 'get' command/],
      [["SET", "key", "value", "BOGUS"], /^ERR syntax error/],
    ];
    for (const [body, message] of bad) {
      const { status, json } = await post(body);
      expect([status, Object.keys(json)]).toEqual([400, ["error"]]);
      expect(json.error).toMatch(message);
    }
    expect((await post(["SET", "key"], "/pipeline")).json.error).toMatch(
      /^ERR command 1 must be a JSON array/,
    );
    expect((await post([], "/multi-exec")).status).toBe(400);
    expect((await request("/set/%zz/x")).status).toBe(400);
  });

  test("accepts numbers and booleans as arguments", async () => {
    await post(["SET", "key", 1.5]);
    expect(await endpoint.execute(["GET", "key"])).toBe("1.5");
    await post(["SET", "key", true]);
    expect(await endpoint.execute(["GET", "key"])).toBe("true");
  });

  test("answers 413 to a body above 10 MiB, and accepts one of exactly that", async () => {
    const limit = 10 * 1024 * 1024;
    const frame = JSON.stringify(["SET", "key", ""]).length;
    expect((await post(["SET", "key", "x".repeat(limit - frame)])).json).toEqual({ result: "OK" });
    const { status, json } = await post(["SET", "key", "x".repeat(limit - frame + 1)]);
    expect(status).toBe(413);
    expect(json.error).toMatch(/^ERR max request size exceeded. Limit: 10485760 bytes/);
    expect(await endpoint.execute(["GET", "key"])).toHaveLength(limit - frame);
  });

  test("answers in RESP2 if the header asks for it", async () => {
    const resp2 = { "upstash-response-format": "resp2" };
    const ok = await post(["SET", "key", "ü"], "/", resp2);
    expect([ok.text, ok.headers.get("content-type")]).toEqual(["+OK\r\n", "application/octet-stream"]);
    expect((await post(["GET", "key"], "/", resp2)).text).toBe("$2\r\nü\r\n");
    expect((await post(["GET", "none"], "/", resp2)).text).toBe("$-1\r\n");
    expect((await post(["INCR", "n"], "/", resp2)).text).toBe(":1\r\n");
    expect((await post(["MGET", "key", "none"], "/", resp2)).text).toBe("*2\r\n$2\r\nü\r\n$-1\r\n");
    expect((await post(["PUBSUB", "NUMSUB", "a"], "/", resp2)).text).toBe("*2\r\n$1\r\na\r\n:0\r\n");
    const failed = await post(["INCR", "key"], "/", resp2);
    expect([failed.status, failed.text]).toEqual([400, "-ERR value is not an integer or out of range\r\n"]);
    expect(
      (
        await post(
          [
            ["INCR", "n"],
            ["GET", "key"],
          ],
          "/pipeline",
          resp2,
        )
      ).text,
    ).toBe(":2\r\n$2\r\nü\r\n");
    // A transaction is always JSON.
    expect((await post([["INCR", "n"]], "/multi-exec", resp2)).json).toEqual([{ result: 3 }]);
    expect((await post(["PING"], "/", { "upstash-response-format": "resp3" })).status).toBe(400);
    expect((await post(["PING"], "/", { ...resp2, "upstash-encoding": "base64" })).status).toBe(400);
    expect((await post(["PING"], "/", { "upstash-encoding": "gzip" })).status).toBe(400);
  });

  test("refuses blocking, connection and admin commands without executing them", async () => {
    await endpoint.execute(["SET", "list", "a"]);
    const refused = [
      ["BLPOP", "list", "1"],
      ["brpop", "list", "1"],
      ["AUTH", "x"],
      ["SELECT", "1"],
      ["CLIENT", "LIST"],
      ["CONFIG", "GET", "*"],
      ["SHUTDOWN"],
      ["SUBSCRIBE", "c"],
      ["MULTI"],
      ["WAIT", "1", "0"],
      ["XREAD", "BLOCK", "0", "STREAMS", "s", "$"],
    ];
    for (const command of refused) {
      const { status, json } = await post(command);
      expect([status, json]).toEqual([400, { error: `ERR Command is not available: '${command[0]}'` }]);
    }
    expect(await endpoint.execute(["GET", "list"])).toBe("a");
    expect(endpoint.log.billed).toBe(0);
    expect(new Set(endpoint.log.entries.map(({ outcome }) => outcome))).toEqual(new Set(["refused"]));
  });

  test("allows only reading with the read-only token", async () => {
    await endpoint.execute(["SET", "key", "value"]);
    const reader = (command: string[], path = "/") => post(command, path, { authorization: "Bearer reader" });
    expect((await reader(["GET", "key"])).json).toEqual({ result: "value" });
    for (const command of [
      ["SET", "key", "x"],
      ["DEL", "key"],
      ["EVAL", "return 1", "0"],
      ["KEYS", "*"],
      ["SCAN", "0"],
    ]) {
      const { status, json } = await reader(command);
      expect(status).toBe(400);
      expect(json.error).toMatch(/^NOPERM this user has no permissions to run the '[a-z]+' command/);
    }
    const batch = [
      ["GET", "key"],
      ["DEL", "key"],
    ] as unknown as string[];
    expect((await reader(batch, "/pipeline")).json).toEqual([
      { result: "value" },
      { error: expect.stringMatching(/^NOPERM/) },
    ]);
    expect((await reader(batch, "/multi-exec")).status).toBe(400);
    expect(await endpoint.execute(["GET", "key"])).toBe("value");
  });

  test("continues a pipeline after an error", async () => {
    const { status, json } = await post(
      [["SET", "a", "x"], ["INCR", "a"], ["QUIT"], ["GET", "a"]],
      "/pipeline",
    );
    expect(status).toBe(200);
    expect(json).toEqual([
      { result: "OK" },
      { error: "ERR value is not an integer or out of range" },
      { error: "ERR Command is not available: 'QUIT'" },
      { result: "x" },
    ]);
  });

  test("executes no other command during a transaction", async () => {
    const transfer = [
      ["INCR", "seen"],
      ["GET", "seen"],
      ["INCR", "seen"],
      ["GET", "seen"],
    ];
    const answers = await Promise.all(Array.from({ length: 20 }, () => post(transfer, "/multi-exec")));
    for (const { json } of answers) {
      const [first, read, second, again] = json.map(({ result }: { result: unknown }) => Number(result));
      expect([read, second, again]).toEqual([first, first + 1, first + 1]);
    }
    expect(await endpoint.execute(["GET", "seen"])).toBe("40");
  });

  test("continues a transaction after an error, as Redis does", async () => {
    const { json } = await post(
      [
        ["SET", "a", "x"],
        ["INCR", "a"],
        ["GET", "a"],
      ],
      "/multi-exec",
    );
    expect(json).toEqual([
      { result: "OK" },
      { error: expect.stringMatching(/not an integer/) },
      { result: "x" },
    ]);
  });

  test("discards the whole transaction if one command is unavailable", async () => {
    const { status, json } = await post(
      [
        ["SET", "a", "x"],
        ["AUTH", "x"],
      ],
      "/multi-exec",
    );
    expect(status).toBe(400);
    expect(json.error).toMatch(/^EXECABORT/);
    expect(await endpoint.execute(["EXISTS", "a"])).toBe(0);
  });
});
