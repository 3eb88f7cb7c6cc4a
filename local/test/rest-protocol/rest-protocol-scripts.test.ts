import { createHash } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { eachEngine } from "../../../test/support/each-engine.ts";
import { type LocalEndpoint, type LocalEndpoints, start } from "../../src/index.ts";

const flag = "#!lua flags=allow-key-locking\n";

eachEngine(["redis"] as const)("DELEX and SET IFEQ in scripts, on %s", (engine) => {
  let local: LocalEndpoints;
  let endpoint: LocalEndpoint;

  beforeAll(async () => {
    local = await start({ count: 1, engine });
    endpoint = local.endpoints[0]!;
  });
  beforeEach(async () => {
    await endpoint.execute(["FLUSHALL"]);
    await endpoint.execute(["SCRIPT", "FLUSH"]);
    await endpoint.execute(["RPUSH", "list", "a"]);
    endpoint.log.reset();
  });
  afterAll(() => local.close());

  async function run(...command: (string | number)[]) {
    const response = await fetch(endpoint.url, {
      method: "POST",
      headers: { authorization: `Bearer ${endpoint.token}` },
      body: JSON.stringify(command),
    });
    return (await response.json()) as { result?: unknown; error?: string };
  }
  /** The reply of a script that calls the command in ARGV with KEYS[1]. */
  const call = (how: string, first: string, key: string, ...words: (string | number)[]) =>
    run("EVAL", `${first}return redis.${how}(ARGV[1], KEYS[1], unpack(ARGV, 2))`, 1, key, ...words);

  test.each([
    [["EVAL", "return 1"], /wrong number of arguments/],
    [["EVAL", "return 1", "x"], /not an integer/],
    [["EVAL", "return", 1], /can't be greater/],
    [["EVALSHA", "0".repeat(40), 0], /NOSCRIPT/],
    [["NOPE"], /unknown command/],
  ])("%j is refused, and billed as one command", async (command, error) => {
    expect((await run(...command)).error).toMatch(error);
    expect(endpoint.log.billed).toBe(1);
  });

  // The scripts of `call` do not name the commands that they call, so a comment mentions them for the emulation.
  const mentioned = "-- DELEX and SET IFEQ\n";

  describe.each([
    ["plain", mentioned],
    ["flagged", flag + mentioned],
  ])("%s", (_, first) => {
    test.each([
      [["DELEX", "IFEQ", "old"], 1, null],
      [["delex", "ifne", "old"], 0, "old"],
      [["DELEX", "IFNE", "other"], 1, null],
      [["DELEX"], 1, null],
      [["SET", "new", "IFEQ", "old"], "OK", "new"],
      [["SET", "new", "IFEQ", "other"], null, "old"],
      [["set", "new", "ifne", "other"], "OK", "new"],
      [["SET", "new", "IFEQ", "old", "GET"], "old", "new"],
      [["SET", "new", "GET", "IFEQ", "other"], "old", "old"],
      [["SET", "IFEQ"], "OK", "IFEQ"],
    ])("%j answers %j and leaves %j", async ([name, ...words], result, remaining) => {
      for (const how of ["call", "pcall"]) {
        await endpoint.execute(["SET", "key", "old"]);
        expect(await call(how, first, "key", name!, ...words)).toEqual({ result });
        expect(await endpoint.execute(["GET", "key"])).toBe(remaining);
      }
    });

    test("a missing key: IFEQ leaves it missing, IFNE creates it", async () => {
      expect(await call("call", first, "none", "SET", "new", "IFEQ", "")).toEqual({ result: null });
      expect(await call("call", first, "none", "DELEX", "IFNE", "x")).toEqual({ result: 0 });
      expect(await call("call", first, "none", "SET", "new", "IFNE", "x")).toEqual({ result: "OK" });
    });

    test("numbers are compared in the form that Redis receives", async () => {
      await endpoint.execute(["SET", "key", "17"]);
      const numbers = `${first}return redis.call('SET', KEYS[1], 18, 'IFEQ', 17)`;
      expect(await run("EVAL", numbers, 1, "key")).toEqual({ result: "OK" });
      expect(await endpoint.execute(["GET", "key"])).toBe("18");
    });

    test.each([
      [["SET", "new", "IFEQ"], /^ERR syntax error/],
      [["SET", "new", "IFEQ", "other", "NX"], /^ERR syntax error/],
      [["SET", "new", "IFEQ", "other", "PX", "0"], /^ERR invalid expire time in 'set' command/],
      [["DELEX", "BOGUS", "a"], /^ERR syntax error/],
    ])("%j is an error, whether or not the condition holds", async ([name, ...words], message) => {
      await endpoint.execute(["SET", "key", "old"]);
      expect((await call("call", first, "key", name!, ...words)).error).toMatch(message);
      expect((await call("pcall", first, "key", name!, ...words)).error).toMatch(message);
      expect(await endpoint.execute(["GET", "key"])).toBe("old");
    });

    test("other types are refused", async () => {
      expect((await call("call", first, "list", "SET", "x", "IFEQ", "a")).error).toMatch(/^WRONGTYPE /);
      expect((await call("call", first, "list", "DELEX", "IFEQ", "a")).error).toMatch(
        /^ERR Key should be of string type if conditions are specified/,
      );
      expect(await endpoint.execute(["LLEN", "list"])).toBe(1);
    });

    test("each is billed as one command", async () => {
      await endpoint.execute(["SET", "key", "old"]);
      for (const words of [
        ["SET", "old", "IFEQ", "old"],
        ["SET", "old", "IFEQ", "other"],
        ["DELEX", "IFEQ", "other"],
        ["DELEX", "IFEQ", "old"],
        ["DELEX"],
      ]) {
        await call("call", first, "key", ...words);
      }
      expect(endpoint.log.entries.map(({ billed }) => billed)).toEqual([2, 2, 2, 2, 2]);
    });

    test("errors name the line, and the script by the client's SHA-1", async () => {
      const script = `${first}\n\nlocal x = nil + 1`;
      const sha = createHash("sha1").update(script).digest("hex");
      const line = script.split("\n").length;
      const { error } = await run("EVAL", script, 0);
      expect(error).toContain(`script: ${sha}, on @user_script:${line}.`);
    });

    test("EVALSHA and SCRIPT EXISTS accept the SHA-1 of the client's script", async () => {
      const script = `${first}return redis.call('DELEX', KEYS[1], 'IFEQ', ARGV[1])`;
      const sha = createHash("sha1").update(script).digest("hex");
      expect(await run("SCRIPT", "LOAD", script)).toEqual({ result: sha });
      expect(await run("SCRIPT", "EXISTS", sha)).toEqual({ result: [1] });
      await endpoint.execute(["SET", "key", "old"]);
      expect(await run("EVALSHA", sha, 1, "key", "old")).toEqual({ result: 1 });
    });
  });

  test("allow-key-locking applies to them, too", async () => {
    for (const command of ["'DELEX', 'other', 'IFEQ', 'a'", "'SET', 'other', 'a', 'IFNE', 'b'"]) {
      expect(await run("EVAL", `${flag}return redis.call(${command})`, 1, "key")).toEqual({
        error:
          "ERR Dynamic keys are not allowed in Lua scripts when 'allow-key-locking' flag is set. Key was: other",
      });
    }
  });

  test("read-only scripts cannot write with them", async () => {
    await endpoint.execute(["SET", "key", "old"]);
    const refused = /^ERR Write commands are not allowed from read-only scripts/;
    for (const command of ["'DELEX', KEYS[1], 'IFEQ', 'old'", "'SET', KEYS[1], 'a', 'IFEQ', 'old'"]) {
      expect((await run("EVAL_RO", `return redis.call(${command})`, 1, "key")).error).toMatch(refused);
    }
    expect(await endpoint.execute(["GET", "key"])).toBe("old");
  });
});
