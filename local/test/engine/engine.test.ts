import { describe, expect, test } from "vitest";
import { cellScript } from "../../../src/redis/cell.lua.ts";
import { peekScript } from "../../../src/redis/peek.lua.ts";
import { textOf } from "../../../src/redis/script.ts";
import type { Dialect } from "../../src/engine/dialect.ts";
import { Engine } from "../../src/engine/engine.ts";

// What is the engine's own. Its commands are those of the lock server, which lock-server/test holds against redis-server.

function engineAt(now = 1_763_714_567_890, dialect: Dialect = "upstash") {
  const clock = { now };
  const engine = new Engine({ now: () => clock.now, dialect });
  return { clock, engine, run: (...command: (string | number)[]) => engine.execute(command) };
}

test("the clock is read once per command, so that nothing expires inside a script", () => {
  let now = 1_763_714_567_890.7;
  const engine = new Engine({ now: () => now++ });
  expect(engine.execute(["TIME"])).toEqual(["1763714567", "890000"]);
  engine.execute(["SET", "k", "v", "PX", 2]);
  expect(engine.execute(["EVAL", peekScript.source, 2, "k", "none"])).toEqual(["v", 1, ""]);
  expect(engine.execute(["GET", "k"])).toBeNull();
});

describe("what it does not have", () => {
  test.each<[command: string[], message: string]>([
    [
      ["LPUSH", "k", "v"],
      "unknown command 'LPUSH': without redis-server there is only what redlock-edge sends.",
    ],
    [["EVAL", "return 1", "0"], "unknown script: without redis-server there is no Lua"],
    [["SCRIPT", "LOAD", `${cellScript.source} `], "unknown script: "],
  ])("%j is refused, with what helps", (command, message) => {
    const refused = () => engineAt().run(...command);
    expect(refused).toThrow(`ERR ${message}`);
    expect(refused).toThrow("Install redis-server: redis-rest-local starts it");
  });

  test("is known before a transaction, unlike what fails only for some data", () => {
    const refusal = (...command: string[]) => engineAt().engine.refusal(command)?.message;
    expect(refusal("GET")).toContain("ERR wrong number of arguments for 'get' command");
    expect(refusal("LPUSH")).toContain("ERR unknown command 'LPUSH'");
    expect([refusal("SET", "k", "v", "PX", "x"), refusal("EVALSHA", "none", "0")]).toEqual([
      undefined,
      undefined,
    ]);
  });
});

describe("dialects", () => {
  const flagged = textOf(peekScript.source, "upstash");
  const noFlag = "ERR Unexpected flag in script shebang: allow-key-locking";

  test.each<[dialect: Dialect, setIfEqual: unknown, delex: unknown, withFlag: unknown]>([
    ["redis", "ERR syntax error", "ERR unknown command 'DELEX'", noFlag],
    ["redis-8.4", "OK", 1, noFlag],
    ["upstash", "OK", 1, ["", -2, ""]],
  ])("%s", (dialect, setIfEqual, delex, withFlag) => {
    const { run } = engineAt(0, dialect);
    const answer = (...command: (string | number)[]) => {
      try {
        return run(...command);
      } catch (error) {
        return (error as Error).message.split(": without")[0];
      }
    };
    run("SET", "k", "v");
    expect(answer("SET", "k", "w", "IFEQ", "v")).toEqual(setIfEqual);
    expect(answer("DELEX", "k", "IFEQ", "w")).toEqual(delex);
    expect(answer("EVAL", flagged, 2, "k", "none")).toEqual(withFlag);
    expect(answer("SCRIPT", "LOAD", flagged)).toEqual(
      dialect === "upstash" ? peekScript.sha.upstash : withFlag,
    );
    expect(answer("EVAL", peekScript.source, 2, "k", "none")).toMatchObject({ length: 3 });
  });
});

test("an unknown dialect is refused", () => {
  expect(() => new Engine({ dialect: "redis-9" as Dialect })).toThrow('dialect must be "upstash"');
});

test("a script is known by its hash once its text was sent, until all is lost", () => {
  const { engine, run } = engineAt();
  const { redis: sha } = peekScript.sha;
  const byHash = () => run("EVALSHA", sha.toUpperCase(), 1, "k");
  const known = () => run("SCRIPT", "EXISTS", sha, cellScript.sha.redis);
  for (const forget of [() => run("SCRIPT", "FLUSH"), () => engine.flush()]) {
    for (const send of [
      () => run("SCRIPT", "LOAD", peekScript.source),
      () => run("EVAL", peekScript.source, 1, "k"),
    ]) {
      expect(byHash).toThrow("NOSCRIPT");
      send();
      expect(byHash()).toEqual(["", -2, ""]);
      expect(known()).toEqual([1, 0]);
      forget();
      expect(known()).toEqual([0, 0]);
    }
  }
});

test("commands for tools: KEYS and DBSIZE have what has not expired, FLUSHALL deletes it, and INCR keeps the ttl", () => {
  const { clock, run } = engineAt();
  for (const key of ["a:1", "a:22", "b.1", "b:1"]) run("SET", key, "v", "PX", 10);
  expect(run("KEYS", "a:*")).toEqual(["a:1", "a:22"]);
  expect(run("KEYS", "?.1")).toEqual(["b.1"]);
  clock.now += 5;
  run("SET", "b:1", "v");
  clock.now += 5;
  expect([run("KEYS", "*"), run("DBSIZE")]).toEqual([["b:1"], 1]);
  expect([run("PEXPIRETIME", "b:1"), run("PEXPIRETIME", "a:1")]).toEqual([-1, -2]);
  run("PEXPIRE", "b:1", 7);
  expect(run("PEXPIRETIME", "b:1")).toBe(clock.now + 7);
  expect([run("INCR", "n"), run("PEXPIRE", "n", 10), run("INCR", "n"), run("PTTL", "n")]).toEqual([
    1, 1, 2, 10,
  ]);
  expect([run("FLUSHALL"), run("DBSIZE")]).toEqual(["OK", 0]);
});
