import { createHash } from "node:crypto";
import { beforeEach, describe, expect, test } from "vitest";
import { redisServer } from "../../../test/support/redis-servers.ts";
import { start } from "../../src/index.ts";
import { oneEndpoint } from "./one-endpoint.ts";

type Words = readonly (string | number)[];

const flag = "#!lua flags=allow-key-locking\n";
const calling = (first = "") => `${first}return redis.call(ARGV[1], KEYS[1], unpack(ARGV, 2))`;

const error = (text: string) => ({ error: expect.stringMatching(new RegExp(`^${text}`)) });
const syntax = error("ERR syntax error");

/** What there is before each of them: "key" has "old", "list" is a list, and there is no "none". */
const conditions: readonly [command: string, answer: object, remaining: string | null][] = [
  ["DELEX key IFEQ old", { result: 1 }, null],
  ["delex key ifeq other", { result: 0 }, "old"],
  ["DELEX key IFNE other", { result: 1 }, null],
  ["DELEX key", { result: 1 }, null],
  ["DELEX none IFNE x", { result: 0 }, null],
  ["SET key new IFEQ old", { result: "OK" }, "new"],
  ["SET key new IFEQ other", { result: null }, "old"],
  ["set key new ifne other", { result: "OK" }, "new"],
  ["SET key new IFNE old", { result: null }, "old"],
  ["SET key new IFEQ old GET", { result: "old" }, "new"],
  ["SET key new GET IFEQ other", { result: "old" }, "old"],
  ["SET key GET IFEQ IFEQ", { result: null }, "old"],
  ["SET none new IFEQ x", { result: null }, null],
  ["SET none new IFNE x", { result: "OK" }, "new"],
  ["DELEX list IFEQ a", error("ERR Key should be of string type if conditions are specified"), null],
  ["DELEX key IFEQ", error("ERR wrong number of arguments for 'delex' command"), "old"],
  ["DELEX key BOGUS a", syntax, "old"],
  ["SET list new IFEQ a", error("WRONGTYPE Operation against a key holding the wrong kind"), null],
  ["SET key new IFEQ", syntax, "old"],
  ["SET key new XX IFNE x", syntax, "old"],
  ["SET key new IFEQ old IFNE x", syntax, "old"],
  ["SET key new IFEQ old BOGUS", syntax, "old"],
  ["SET key new IFEQ old PX 0", error("ERR invalid expire time in 'set' command"), "old"],
  ["SET key new KEEPTTL EX 10 IFNE old", syntax, "old"],
];

describe.skipIf(!redisServer)("Upstash's additions to Redis 7", () => {
  const one = oneEndpoint({ engine: "redis" });
  const { post, run } = one;
  beforeEach(async () => {
    await one.endpoint.execute(["SET", "key", "old"]);
    await one.endpoint.execute(["RPUSH", "list", "a"]);
  });

  const around = (command: Words) => [["SET", "before", 1], command, ["SET", "after", 2]];

  test.each(conditions)("%s answers %j and leaves %j", async (line, answer, remaining) => {
    expect(await run(...line.split(" "))).toEqual(answer);
    expect(one.endpoint.log.billed).toBe(1);
    expect(await run("MGET", line.split(" ")[1]!)).toEqual({ result: [remaining] });
  });

  test.each(conditions)("%s in a transaction answers %j and leaves %j", async (line, answer, remaining) => {
    const { json } = await post(around(line.split(" ")), "/multi-exec");
    expect(json).toEqual([{ result: "OK" }, answer, { result: "OK" }]);
    expect(one.endpoint.log.billed).toBe(3);
    expect(await run("MGET", line.split(" ")[1]!)).toEqual({ result: [remaining] });
  });

  test("SET with a condition keeps its other options", async () => {
    await run("SET", "key", "old", "PX", 50_000);
    expect(await run("SET", "key", "new", "IFEQ", "old", "KEEPTTL")).toEqual({ result: "OK" });
    expect((await run("PTTL", "key")).result).toBeGreaterThan(0);
    expect(await run("SET", "key", "newer", "EX", 100, "IFEQ", "new")).toEqual({ result: "OK" });
    expect(await run("TTL", "key")).toEqual({ result: 100 });
    expect(await run("SET", "key", "newest", "IFEQ", "newer", "GET")).toEqual({ result: "newer" });
    expect(await run("TTL", "key")).toEqual({ result: -1 });
  });

  test("are not there in the dialect redis, which is the server as it is", async () => {
    await using local = await start({ count: 1, engine: "redis", dialect: "redis" });
    const [endpoint] = local.endpoints;
    const script = ["EVAL", `${flag}return 1`, 0];
    await expect(endpoint.execute(script)).rejects.toThrow("Unexpected flag");
    // Redis 8.4 has it.
    const [known] = (await endpoint.execute(["COMMAND", "INFO", "DELEX"])) as [unknown];
    if (known === null) await expect(endpoint.execute(["DELEX", "key"])).rejects.toThrow("unknown command");
  });

  test("base64 has the exact bytes of a value that is no text", async () => {
    await run("SETBIT", "bytes", 0, 1);
    expect(await run("GET", "bytes")).toEqual({ result: "\ufffd" });
    expect((await post(["GET", "bytes"], "/", { "upstash-encoding": "base64" })).json).toEqual({
      result: "gA==",
    });
  });

  test("MEMORY USAGE is there, and no other subcommand of MEMORY", async () => {
    expect((await run("MEMORY", "USAGE", "key")).result).toBeGreaterThan(5);
    expect(await run("MEMORY", "DOCTOR")).toEqual({ error: "ERR Command is not available: 'MEMORY'" });
  });

  test("SCAN WITHTYPE has the type of every key after it, and is billed as one command", async () => {
    const scan = (...words: Words) => run("SCAN", 0, ...words);
    expect(await scan("MATCH", "l*", "WITHTYPE")).toEqual({ result: ["0", ["list", "list"]] });
    expect(await scan("withtype", "MATCH", "key")).toEqual({ result: ["0", ["key", "string"]] });
    expect(await run("SCAN", "x", "WITHTYPE")).toEqual({ error: "ERR invalid cursor" });
    expect(one.endpoint.log.billed).toBe(3);
  });

  test.each([[["DELEX"]], [["SET", "key"]], [["NOSUCH", "key"]], [["EVAL", "return 1"]]])(
    "a transaction with a command that cannot be queued is discarded as a whole: %j",
    async (command) => {
      expect((await post(around(command), "/multi-exec")).json).toEqual({
        error: "EXECABORT Transaction discarded because of previous errors.",
      });
      expect(await run("EXISTS", "before", "after")).toEqual({ result: 0 });
    },
  );

  describe("scripts", () => {
    test.each(["", flag])(
      "are found, and named in errors, by the SHA-1 of the client's text: %j",
      async (first) => {
        const script = calling(first);
        const sha = createHash("sha1").update(script).digest("hex");
        const bySha = (hash = sha) => run("EVALSHA", hash, 1, "key", "GET");
        expect((await bySha()).error).toMatch(/^NOSCRIPT /);
        expect(await run("EVAL", script, 1, "key", "GET")).toEqual({ result: "old" });
        expect(await bySha(sha.toUpperCase())).toEqual({ result: "old" });
        expect(await run("SCRIPT", "EXISTS", sha, "0".repeat(40))).toEqual({ result: [1, 0] });
        await run("SCRIPT", "FLUSH");
        expect((await bySha()).error).toMatch(/^NOSCRIPT /);
        expect(await run("SCRIPT", "LOAD", script)).toEqual({ result: sha });
        expect(await bySha()).toEqual({ result: "old" });
        const wrong = `${first}\n\nlocal x = nil + 1`;
        const { error } = await run("EVAL", wrong, 0);
        const wrongSha = createHash("sha1").update(wrong).digest("hex");
        expect(error).toContain(`script: ${wrongSha}, on @user_script:${wrong.split("\n").length}.`);
      },
    );

    test("with allow-key-locking cannot access a key that they did not declare", async () => {
      const dynamic = `${flag}return redis.call('SET', KEYS[1] .. ':x', 1)`;
      const locked = (key: string) =>
        `ERR Dynamic keys are not allowed in Lua scripts when 'allow-key-locking' flag is set. Key was: ${key}`;
      expect(await run("EVAL", dynamic, 1, "key")).toEqual({ error: locked("key:x") });
      expect(await run("EVAL", dynamic.replace("call", "pcall"), 1, "key")).toEqual({
        error: locked("key:x"),
      });
      expect(await run("EXISTS", "key:x")).toEqual({ result: 0 });
      expect(await run("EVAL", dynamic, 2, "key", "key:x")).toEqual({ result: "OK" });
      // Without the flag they may compute their keys.
      expect(await run("EVAL", dynamic.replace(flag, ""), 1, "key")).toEqual({ result: "OK" });
    });

    test("with allow-key-locking may use commands without keys, but not FLUSHALL", async () => {
      const returning = (expression: string) => run("EVAL", `${flag}return ${expression}`, 0);
      expect(await returning("redis.call('DBSIZE')")).toEqual({ result: 2 });
      expect((await returning("redis.call('FLUSHALL')")).error).toMatch(
        /^ERR FLUSHALL is not allowed in Lua scripts/,
      );
    });

    test("are billed with what they call, each of a transaction and each of concurrent ones by itself", async () => {
      const times = (count: number, key: string) => [
        "EVAL",
        `for i = 1, ${count} do redis.call('INCR', KEYS[1]) end return ${count}`,
        1,
        key,
      ];
      const batch = [["SET", "n", 1], times(2, "n"), ["GET", "n"], times(0, "n"), ["INCR", "n"]];
      const results = [{ result: "OK" }, { result: 2 }, { result: "3" }, { result: 0 }, { result: 4 }];
      expect((await post(batch, "/multi-exec")).json).toEqual(results);
      expect(one.endpoint.log.entries.map(({ billed }) => billed)).toEqual([1, 3, 1, 1, 1]);
      const counts = Array.from({ length: 40 }, (_, count) => count);
      one.endpoint.log.reset();
      await Promise.all(counts.flatMap((count) => [run(...times(count, `${count}`)), run("INCR", "other")]));
      const scripts = one.endpoint.log.entries.filter(({ command }) => command[0] === "EVAL");
      expect(scripts.map(({ billed }) => billed - 1).sort((a, b) => a - b)).toEqual(counts);
    });
  });
});
