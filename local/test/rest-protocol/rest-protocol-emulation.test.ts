import { createHash } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { eachEngine } from "../../../test/support/each-engine.ts";
import { type LocalEndpoint, type LocalEndpoints, start } from "../../src/index.ts";

const wrongType = "WRONGTYPE Operation against a key holding the wrong kind of value";

eachEngine(["redis"] as const)("Upstash's additions to Redis 7 on %s", (engine) => {
  let local: LocalEndpoints;
  let endpoint: LocalEndpoint;

  beforeAll(async () => {
    local = await start({ count: 1, engine });
    endpoint = local.endpoints[0]!;
  });
  beforeEach(async () => {
    await endpoint.execute(["FLUSHALL"]);
    await endpoint.execute(["SCRIPT", "FLUSH"]);
    endpoint.log.reset();
  });
  afterAll(() => local.close());

  async function post(command: unknown, path = "/") {
    const response = await fetch(endpoint.url + path, {
      method: "POST",
      headers: { authorization: `Bearer ${endpoint.token}` },
      body: JSON.stringify(command),
    });
    return (await response.json()) as { result?: unknown; error?: string };
  }
  const run = (...command: (string | number)[]) => post(command);

  describe("DELEX", () => {
    test.each([
      ["IFEQ", "value", 1],
      ["ifeq", "other", 0],
      ["IFNE", "other", 1],
      ["IFNE", "value", 0],
      ["IFEQ", "", 0],
    ])("%s %j answers %i", async (condition, compared, deleted) => {
      await run("SET", "key", "value");
      expect(await run("DELEX", "key", condition, compared)).toEqual({ result: deleted });
      expect(await run("EXISTS", "key")).toEqual({ result: 1 - deleted });
    });

    test("of a missing key is 0 under both conditions", async () => {
      expect(await run("DELEX", "none", "IFEQ", "")).toEqual({ result: 0 });
      expect(await run("DELEX", "none", "IFNE", "x")).toEqual({ result: 0 });
    });

    test("without a condition is DEL", async () => {
      await run("RPUSH", "list", "a");
      expect(await run("DELEX", "list")).toEqual({ result: 1 });
    });

    test("refuses other types and malformed commands", async () => {
      await run("RPUSH", "list", "a");
      const error = "ERR Key should be of string type if conditions are specified";
      expect(await run("DELEX", "list", "IFEQ", "a")).toEqual({ error });
      expect(await run("EXISTS", "list")).toEqual({ result: 1 });
      expect((await run("DELEX")).error).toMatch(/^ERR wrong number of arguments for 'delex' command/);
      expect((await run("DELEX", "list", "IFEQ")).error).toMatch(/^ERR /);
      expect((await run("DELEX", "list", "BOGUS", "a")).error).toMatch(/^ERR /);
    });

    test("is billed as one command", async () => {
      await run("DELEX", "key", "IFEQ", "value");
      expect(endpoint.log.billed).toBe(1);
    });
  });

  describe("SET with a condition", () => {
    test.each([
      ["IFEQ", "old", "OK", "new"],
      ["IFEQ", "other", null, "old"],
      ["IFNE", "other", "OK", "new"],
      ["ifne", "old", null, "old"],
    ])("%s %j answers %j", async (condition, compared, result, after) => {
      await run("SET", "key", "old");
      expect(await run("SET", "key", "new", condition, compared)).toEqual({ result });
      expect(await run("GET", "key")).toEqual({ result: after });
      expect(endpoint.log.billed).toBe(3);
    });

    test("of a missing key: IFEQ leaves it missing, IFNE creates it", async () => {
      expect(await run("SET", "key", "new", "IFEQ", "")).toEqual({ result: null });
      expect(await run("EXISTS", "key")).toEqual({ result: 0 });
      expect(await run("SET", "key", "new", "IFNE", "x")).toEqual({ result: "OK" });
    });

    test("keeps SET's other options", async () => {
      await run("SET", "key", "old", "PX", 50_000);
      expect(await run("SET", "key", "new", "IFEQ", "old", "KEEPTTL")).toEqual({ result: "OK" });
      expect((await run("PTTL", "key")).result).toBeGreaterThan(0);
      expect(await run("SET", "key", "newer", "EX", 100, "IFEQ", "new")).toEqual({ result: "OK" });
      expect(await run("TTL", "key")).toEqual({ result: 100 });
      expect(await run("SET", "key", "newest", "IFEQ", "newer", "GET")).toEqual({ result: "newer" });
      expect(await run("TTL", "key")).toEqual({ result: -1 });
      expect(await run("SET", "key", "no", "GET", "IFEQ", "bogus")).toEqual({ result: "newest" });
      expect(await run("SET", "none", "x", "IFNE", "y", "GET")).toEqual({ result: null });
      expect(await run("GET", "none")).toEqual({ result: "x" });
    });

    test("refuses other types and contradictory options", async () => {
      await run("RPUSH", "list", "a");
      expect(await run("SET", "list", "x", "IFEQ", "a")).toEqual({ error: wrongType });
      await run("SET", "key", "old");
      for (const options of [
        ["IFEQ"],
        ["IFEQ", "old", "NX"],
        ["XX", "IFNE", "x"],
        ["IFEQ", "old", "IFNE", "x"],
      ]) {
        expect((await run("SET", "key", "new", ...options)).error).toMatch(/^ERR syntax error/);
      }
      expect((await run("SET", "key", "new", "IFEQ", "old", "PX", 0)).error).toMatch(
        /^ERR invalid expire time/,
      );
      expect((await run("SET", "key", "new", "IFEQ", "old", "GET", "PX", 0)).error).toMatch(/^ERR invalid/);
      expect(await run("GET", "key")).toEqual({ result: "old" });
    });

    test.each([
      [["BOGUS"], "ERR syntax error"],
      [["EX"], "ERR syntax error"],
      [["EX", "10", "PX", "10"], "ERR syntax error"],
      [["KEEPTTL", "EX", "10"], "ERR syntax error"],
      [["EX", "ten"], "ERR value is not an integer or out of range"],
      [["PX", "0"], "ERR invalid expire time in 'set' command"],
      [["GET", "EXAT", "-1"], "ERR invalid expire time in 'set' command"],
    ])("checks the options %j even if the condition does not hold", async (options, error) => {
      await run("SET", "key", "old");
      await run("RPUSH", "list", "a");
      for (const compared of ["old", "other"]) {
        for (const condition of ["IFEQ", "IFNE"]) {
          for (const key of ["key", "missing", "list"]) {
            expect(await run("SET", key, "new", condition, compared, ...options)).toEqual({ error });
            // EX without a value would parse the condition as its value.
            if (options.join() === "EX") continue;
            expect(await run("SET", key, "new", ...options, condition, compared)).toEqual({ error });
          }
        }
      }
      expect(await run("MGET", "key", "missing")).toEqual({ result: ["old", null] });
    });

    test("stores option names as values", async () => {
      expect(await run("SET", "key", "IFEQ")).toEqual({ result: "OK" });
      expect(await run("SET", "key", "GET", "IFEQ", "IFEQ")).toEqual({ result: "OK" });
      expect(await run("GET", "key")).toEqual({ result: "GET" });
    });
  });

  test("conditions are atomic: one of many concurrent compare-and-sets succeeds", async () => {
    await run("SET", "key", "start");
    const attempts = Array.from({ length: 30 }, (_, index) =>
      run("SET", "key", `by ${index}`, "IFEQ", "start"),
    );
    const results = await Promise.all(attempts);
    expect(results.filter(({ result }) => result === "OK")).toHaveLength(1);
  });

  test("conditions work inside a transaction", async () => {
    const batch = [
      ["SET", "key", "a"],
      ["SET", "key", "b", "IFEQ", "a"],
      ["DELEX", "key", "IFEQ", "b"],
      ["EXISTS", "key"],
    ];
    expect(await post(batch, "/multi-exec")).toEqual([
      { result: "OK" },
      { result: "OK" },
      { result: 1 },
      { result: 0 },
    ]);
  });

  describe("keys", () => {
    test("COPY of a key to itself copies nothing, and is not an error", async () => {
      await run("SET", "key", "value");
      expect(await run("COPY", "key", "key")).toEqual({ result: 0 });
      expect(await run("COPY", "key", "other")).toEqual({ result: 1 });
      expect(await run("COPY", "key", "key", "foo")).toEqual({ error: "ERR syntax error" });
    });

    test("MEMORY USAGE is there, and no other subcommand of MEMORY", async () => {
      await run("SET", "key", "value");
      expect((await run("MEMORY", "USAGE", "key")).result).toBeGreaterThan(5);
      expect(await run("MEMORY", "DOCTOR")).toEqual({ error: "ERR Command is not available: 'MEMORY'" });
    });

    test("SCAN WITHTYPE has the type of every key after it, and is billed as one command", async () => {
      await run("SADD", "set", "a");
      await run("SET", "withtype", "value");
      endpoint.log.reset();
      expect(await run("SCAN", 0, "MATCH", "s*", "WITHTYPE")).toEqual({ result: ["0", ["set", "set"]] });
      expect(await run("SCAN", 0, "withtype", "MATCH", "withtype")).toEqual({
        result: ["0", ["withtype", "string"]],
      });
      expect(await run("SCAN", 0, "MATCH", "withtype")).toEqual({ result: ["0", ["withtype"]] });
      expect(await run("SCAN", "x", "WITHTYPE")).toEqual({ error: "ERR invalid cursor" });
      expect(endpoint.log.billed).toBe(4);
    });
  });

  describe("a transaction with a command that fails", () => {
    const around = (command: unknown[]) => [["SET", "before", 1], command, ["SET", "after", 2]];

    test.each([
      [["SET", "key", "new", "IFEQ"], "ERR syntax error"],
      [["SET", "key", "new", "IFEQ", "old", "NX"], "ERR syntax error"],
      [["SET", "key", "new", "IFEQ", "old", "BOGUS"], "ERR syntax error"],
      [["SET", "key", "new", "IFEQ", "old", "PX", 0], "ERR invalid expire time in 'set' command"],
      [["DELEX", "key", "BOGUS", "a"], "ERR syntax error"],
      [["DELEX", "key", "IFEQ"], "ERR wrong number of arguments for 'delex' command"],
      [["DELEX", "list", "IFEQ", "a"], "ERR Key should be of string type if conditions are specified"],
    ])("while it runs executes the others: %j", async (command, error) => {
      await run("RPUSH", "list", "a");
      expect(await post(around(command), "/multi-exec")).toEqual([
        { result: "OK" },
        { error },
        { result: "OK" },
      ]);
      expect(await run("MGET", "before", "key", "after")).toEqual({ result: ["1", null, "2"] });
    });

    test.each([[["DELEX"]], [["SET", "key"]], [["NOSUCH", "key"]], [["EVAL", "return 1"]]])(
      "that cannot be queued is discarded as a whole: %j",
      async (command) => {
        expect(await post(around(command), "/multi-exec")).toEqual({
          error: "EXECABORT Transaction discarded because of previous errors.",
        });
        expect(await run("EXISTS", "before", "after")).toEqual({ result: 0 });
      },
    );
  });

  describe("scripts with allow-key-locking", () => {
    const script =
      "#!lua flags=allow-key-locking\nredis.call('SET', KEYS[1], ARGV[1])\nreturn redis.call('GET', KEYS[1])";
    const sha = createHash("sha1").update(script).digest("hex");

    test("run, and are found by the SHA-1 of the client's script", async () => {
      expect((await run("EVALSHA", sha, 1, "key", "a")).error).toMatch(/^NOSCRIPT /);
      expect(await run("EVAL", script, 1, "key", "a")).toEqual({ result: "a" });
      expect(await run("EVALSHA", sha, 1, "key", "b")).toEqual({ result: "b" });
      expect(await run("EVALSHA", sha.toUpperCase(), 1, "key", "c")).toEqual({ result: "c" });
      expect(await run("SCRIPT", "EXISTS", sha, "0".repeat(40))).toEqual({ result: [1, 0] });
      await run("SCRIPT", "FLUSH");
      expect((await run("EVALSHA", sha, 1, "key", "a")).error).toMatch(/^NOSCRIPT /);
      expect(await run("SCRIPT", "LOAD", script)).toEqual({ result: sha });
      expect(await run("EVALSHA", sha, 1, "key", "d")).toEqual({ result: "d" });
    });

    test("are billed like any script", async () => {
      await run("EVAL", script, 1, "key", "a");
      await run("EVALSHA", sha, 1, "key", "a");
      expect(endpoint.log.entries.map(({ billed }) => billed)).toEqual([3, 3]);
    });

    test("cannot access a key that they did not declare", async () => {
      const dynamic = "#!lua flags=allow-key-locking\nreturn redis.call('SET', KEYS[1] .. ':x', 1)";
      const refused =
        "ERR Dynamic keys are not allowed in Lua scripts when 'allow-key-locking' flag is set. Key was: key:x";
      expect(await run("EVAL", dynamic, 1, "key")).toEqual({ error: refused });
      expect(await run("EVAL", dynamic.replace("call", "pcall"), 1, "key")).toEqual({ error: refused });
      expect(await run("EXISTS", "key:x")).toEqual({ result: 0 });
      expect(await run("EVAL", dynamic, 2, "key", "key:x")).toEqual({ result: "OK" });
    });

    test("can catch the refusal with pcall", async () => {
      const caught =
        "#!lua flags=allow-key-locking\nlocal r = redis.pcall('GET', 'other')\nreturn string.find(r.err, 'key-locking', 1, true) and 1";
      expect(await run("EVAL", caught, 1, "key")).toEqual({ result: 1 });
    });

    test("cannot write to the whole database", async () => {
      const flush = "#!lua flags=allow-key-locking\nreturn redis.call('FLUSHALL')";
      expect(await run("EVAL", flush, 0)).toEqual({
        error: "ERR FLUSHALL is not allowed in Lua scripts when 'allow-key-locking' flag is set",
      });
      expect(await run("EVAL", "#!lua flags=allow-key-locking\nreturn redis.call('DBSIZE')", 0)).toEqual({
        result: 0,
      });
    });

    test("may call commands without keys", async () => {
      const time = "#!lua flags=allow-key-locking\nreturn #redis.call('TIME')";
      expect(await run("EVAL", time, 0)).toEqual({ result: 2 });
    });
  });

  test("a script without the flag may compute its keys", async () => {
    expect(await run("EVAL", "return redis.call('SET', KEYS[1] .. ':x', 1)", 1, "key")).toEqual({
      result: "OK",
    });
  });

  test("a transaction bills each of its scripts", async () => {
    const twice = "redis.call('INCR', KEYS[1]) return redis.call('INCR', KEYS[1])";
    const batch = [
      ["SET", "n", 1],
      ["EVAL", twice, 1, "n"],
      ["GET", "n"],
      ["EVAL", "return 'none'", 0],
      ["INCR", "n"],
    ];
    expect(await post(batch, "/multi-exec")).toEqual([
      { result: "OK" },
      { result: 3 },
      { result: "3" },
      { result: "none" },
      { result: 4 },
    ]);
    expect(endpoint.log.entries.map(({ billed }) => billed)).toEqual([1, 3, 1, 1, 1]);
  });

  test("concurrent scripts are billed separately", async () => {
    const calls = (count: number) =>
      run(
        "EVAL",
        `for i = 1, ${count} do redis.call('INCR', KEYS[1]) end return ${count}`,
        1,
        `key ${count}`,
      );
    await Promise.all(Array.from({ length: 40 }, (_, index) => [calls(index), run("INCR", "other")]).flat());
    const scripts = endpoint.log.entries.filter(({ command }) => command[0] === "EVAL");
    expect(scripts).toHaveLength(40);
    for (const { command, billed } of scripts) {
      expect(billed).toBe(1 + Number(/return (\d+)$/.exec(command[1]!)![1]));
    }
  });
});
