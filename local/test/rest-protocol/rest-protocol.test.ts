import { describe, expect, test } from "vitest";
import { engines } from "../../../test/support/redis-servers.ts";
import { oneEndpoint } from "./one-endpoint.ts";

describe.each(engines)("REST protocol on %s", (engine) => {
  const one = oneEndpoint({ engine, token: "full", readOnlyToken: "reader" });
  const { post, request, run } = one;
  const execute = (...command: string[]) => one.endpoint.execute(command);

  test.each([
    ["SET key bar", "OK"],
    ["GET key", "YmFy"],
    ["DBSIZE", 2],
    ["MGET ok none", ["T0s=", null]],
  ])("base64 encodes every string except OK as a whole reply: %s", async (command, result) => {
    for (const key of ["key", "ok"]) await run("SET", key, key === "ok" ? "OK" : "bar");
    const base64 = { "upstash-encoding": "base64" };
    expect((await post(command.split(" "), "/", base64)).json).toEqual({ result });
    expect((await post([command.split(" ")], "/pipeline", base64)).json).toEqual([{ result }]);
  });

  test("accepts a command in the path, with every method", async () => {
    expect((await request("/set/foo/bar/PX/100000")).json).toEqual({ result: "OK" });
    expect((await request("/get/foo", { method: "PUT" })).json).toEqual({ result: "bar" });
    expect((await request("/GET/foo/", { method: "POST" })).json).toEqual({ result: "bar" });
    const head = await request("/get/foo", { method: "HEAD" });
    expect([head.status, head.text]).toEqual([200, ""]);
    for (const path of ["/set/a%2Fb/%C3%BC%20%2B", "/set?b=x=y&&_token=full", "/set?plus=+%2B"])
      await request(path);
    expect(await execute("MGET", "a/b", "b", "plus")).toEqual(["ü +", "x=y", " +"]);
  });

  test("accepts numbers and booleans as arguments", async () => {
    await post(["SET", 1.5, true]);
    expect(await execute("GET", "1.5")).toBe("true");
  });

  test("appends the body and then the query to a command in the path", async () => {
    expect((await post('{"json":true}', "/set/foo?PX=100000&_token=full")).json).toEqual({ result: "OK" });
    expect(await execute("GET", "foo")).toBe('{"json":true}');
    expect(await execute("PTTL", "foo")).toBeGreaterThan(0);
    expect((await post("other", "/set/foo?NX")).json).toEqual({ result: null });
    expect(one.endpoint.log.entries.at(-1)?.command).toEqual(["set", "foo", "other", "NX"]);
  });

  test.each([
    ["/set/key/value", "bearer  full ", 200],
    ["/set/key/value?_token=full", "Bearer wrong", 200],
    ["/get/key", "reader", 200],
    ["/set/key/value", "Bearer Full", 401],
    ["/set/key/value?_token=wrong", "Bearer full", 401],
    ["/set/key/value?_token=", "Bearer full", 401],
  ])(
    "answers %s with %j: %i, and without a valid token it executes nothing",
    async (path, authorization, status) => {
      const answer = await request(path, { headers: { authorization } });
      expect(answer.status).toBe(status);
      if (status === 200) return;
      expect(answer.json).toEqual({ error: "WRONGPASS invalid or missing auth token" });
      expect(await execute("EXISTS", "key")).toBe(0);
    },
  );

  test("answers 405 to other methods", async () => {
    const { status, headers, json } = await request("/get/foo", { method: "PATCH" });
    expect([status, headers.get("allow")]).toEqual([405, "HEAD, GET, POST, PUT"]);
    expect(json).toEqual({ error: expect.stringContaining("PATCH") });
  });

  test.each<[body: unknown, error: RegExp, path?: string]>([
    ["", /^ERR empty body/],
    ["{not json", /^ERR the body is not JSON/],
    [[], /^ERR empty command/],
    [["SET", "key", null], /^ERR null args are not supported/],
    [["SET", "key", {}], /^ERR unsupported arg type/],
    [["EVAL", "return 1"], /^ERR wrong number of arguments for 'eval' command/],
    [["GET"], /^ERR wrong number of arguments for 'get' command/],
    [["SET", "key", "value", "BOGUS"], /^ERR syntax error/],
    [["SET", "key"], /^ERR command 1 must be a JSON array/, "/pipeline"],
    [[], /^ERR/, "/multi-exec"],
    ["", /^ERR/, "/set/%zz/x"],
  ])("answers 400 to %j: %s", async (body, message, path = "/") => {
    const { status, json } = await post(body, path);
    expect([status, json]).toEqual([400, { error: expect.stringMatching(message) }]);
  });

  test("answers 413 to a body above 10 MiB, and accepts one of exactly that", async () => {
    const limit = 10 * 1024 * 1024;
    const frame = JSON.stringify(["SET", "key", ""]).length;
    expect((await post(["SET", "key", "x".repeat(limit - frame)])).json).toEqual({ result: "OK" });
    const { status, json } = await post(["SET", "key", "x".repeat(limit - frame + 1)]);
    expect(status).toBe(413);
    expect(json.error).toMatch(/^ERR max request size exceeded. Limit: 10485760 bytes/);
    expect(await execute("GET", "key")).toHaveLength(limit - frame);
  });

  test.each(["brpop list 1", "AUTH x", "SHUTDOWN", "SUBSCRIBE c", "XREAD BLOCK 0 STREAMS s $"])(
    "refuses %s, which blocks, or is about the connection or the server",
    async (line) => {
      const command = line.split(" ");
      const { status, json } = await post(command);
      expect([status, json]).toEqual([400, { error: `ERR Command is not available: '${command[0]}'` }]);
      expect(one.endpoint.log.entries).toMatchObject([{ outcome: "refused", billed: 0 }]);
    },
  );

  test("allows only reading with the read-only token", async () => {
    await execute("SET", "key", "value");
    const reader = (command: unknown[], path = "/") =>
      post(command, path, { authorization: "Bearer reader" });
    expect((await reader(["GET", "key"])).json).toEqual({ result: "value" });
    const refused = {
      error: expect.stringMatching(/^NOPERM this user has no permissions to run the '[a-z]+'/),
    };
    for (const command of ["SET key x", "DEL key", "EVAL return 0", "KEYS *", "SCAN 0"]) {
      const { status, json } = await reader(command.split(" "));
      expect([command, status, json]).toEqual([command, 400, refused]);
    }
    const batch = ["GET key", "DEL key"].map((command) => command.split(" "));
    expect((await reader(batch, "/pipeline")).json).toEqual([{ result: "value" }, refused]);
    expect((await reader(batch, "/multi-exec")).status).toBe(400);
    expect(await execute("GET", "key")).toBe("value");
  });

  test.each(["/pipeline", "/multi-exec"])("continues after an error, as Redis does: %s", async (path) => {
    const batch = ["SET a x", "INCR a", "GET a"].map((command) => command.split(" "));
    const { status, json } = await post(batch, path);
    const error = "ERR value is not an integer or out of range";
    expect([status, json]).toEqual([200, [{ result: "OK" }, { error }, { result: "x" }]]);
  });

  test("executes no other command during a transaction", async () => {
    const transfer = Array.from({ length: 4 }, (_, index) => [index % 2 === 0 ? "INCR" : "GET", "seen"]);
    const answers = await Promise.all(Array.from({ length: 20 }, () => post(transfer, "/multi-exec")));
    for (const { json } of answers) {
      const [first, read, second, again] = json.map(({ result }: { result: unknown }) => Number(result));
      expect([read, second, again]).toEqual([first, first + 1, first + 1]);
    }
    expect(await execute("GET", "seen")).toBe("40");
  });

  test("one command that is unavailable fails alone in a pipeline, and discards a whole transaction", async () => {
    const batch = [["SET", "a", "x"], ["QUIT"]];
    const refused = { error: "ERR Command is not available: 'QUIT'" };
    expect((await post(batch, "/pipeline")).json).toEqual([{ result: "OK" }, refused]);
    await execute("DEL", "a");
    const { status, json } = await post(batch, "/multi-exec");
    expect([status, json]).toEqual([400, { error: expect.stringMatching(/^EXECABORT/) }]);
    expect(await execute("EXISTS", "a")).toBe(0);
  });
});
