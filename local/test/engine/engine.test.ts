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

test("its clock is the one that is given", () => {
  const { clock, run } = engineAt();
  expect(run("TIME")).toEqual(["1763714567", "890000"]);
  clock.now = 1_763_714_568_001.7;
  expect(run("TIME")).toEqual(["1763714568", "1000"]);
});

test("the clock is read once per command, so that nothing expires inside a script", () => {
  let now = 1_000;
  const engine = new Engine({ now: () => now++ });
  engine.execute(["SET", "k", "v", "PX", 2]);
  expect(engine.execute(["EVAL", peekScript.source, 2, "k", "none"])).toEqual(["v", 1, ""]);
  expect(engine.execute(["GET", "k"])).toBeNull();
});

describe("what it does not have", () => {
  test.each([
    [
      ["LPUSH", "k", "v"],
      "unknown command 'LPUSH': without redis-server there is only what redlock-edge sends.",
    ],
    [["PUBSUB", "CHANNELS"], "unknown command 'PUBSUB CHANNELS': "],
    [["EVAL", "return 1", 0], "unknown script: without redis-server there is no Lua"],
    [["SCRIPT", "LOAD", `${cellScript.source} `], "unknown script: "],
  ] as const)("%j is refused, with what helps", (command, message) => {
    const refused = () => engineAt().run(...command);
    expect(refused).toThrow(`ERR ${message}`);
    expect(refused).toThrow("Install redis-server: redis-rest-local starts it");
  });

  test.each([
    [["GET"], "ERR wrong number of arguments for 'get' command"],
    [["LPUSH"], "ERR unknown command 'LPUSH'"],
  ] as const)("%j would discard a transaction", (command, message) => {
    expect(engineAt().engine.refusal(command)?.message).toContain(message);
  });

  test("a command that fails only for some data would not", () => {
    for (const command of [
      ["GET", "k"],
      ["SET", "k", "v", "PX", "x"],
      ["EVALSHA", "none", "0"],
    ]) {
      expect(engineAt().engine.refusal(command)).toBeUndefined();
    }
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

  test("an unknown one is refused", () => {
    expect(() => new Engine({ dialect: "redis-9" as Dialect })).toThrow('dialect must be "upstash"');
  });
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

test("each command is billed, and each that a script calls", () => {
  const { engine, run } = engineAt();
  run("GET", "k");
  expect(engine.billed).toBe(1);
  run("EVAL", peekScript.source, 1, "k");
  expect(engine.billed).toBe(4);
  engine.subscribe(["a", "b"], () => undefined)();
  expect(engine.billed).toBe(6);
});

test("subscribers have each message of their channels, until they leave", () => {
  const { engine, run } = engineAt();
  const heard: unknown[] = [];
  const leave = engine.subscribe(["a", "b"], (push) => heard.push(push));
  expect(heard.splice(0)).toEqual([
    ["subscribe", "a", 1],
    ["subscribe", "b", 2],
  ]);
  const leaveAgain = engine.subscribe(["a"], () => undefined);
  expect([run("PUBLISH", "a", "x"), run("PUBLISH", "none", "x")]).toEqual([2, 0]);
  expect(heard).toEqual([["message", "a", "x"]]);
  leave();
  leave();
  expect(run("PUBSUB", "NUMSUB", "a", "b")).toEqual(["a", 1, "b", 0]);
  leaveAgain();
  expect(run("PUBLISH", "a", "x")).toBe(0);
});

describe("commands for tools", () => {
  test("KEYS and DBSIZE have what has not expired, and FLUSHALL deletes it", () => {
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
    expect([run("FLUSHALL"), run("DBSIZE")]).toEqual(["OK", 0]);
  });

  test("SCAN finds each key that stays, while others come and go", () => {
    const { run } = engineAt();
    const stay = Array.from({ length: 200 }, (_, index) => `stays-${index}`);
    for (const key of stay) run("SET", key, "v");
    const found: string[] = [];
    let cursor = "0";
    for (let step = 0; step === 0 || cursor !== "0"; step += 1) {
      const [next, keys] = run("SCAN", cursor, "COUNT", 7, "MATCH", "stays-*") as [string, string[]];
      found.push(...keys);
      cursor = next;
      run("SET", `goes-${step}`, "v");
      run("DEL", `goes-${step - 3}`);
    }
    expect(found.sort()).toEqual(stay.sort());
    expect(() => run("SCAN", 0, "COUNT", 0)).toThrow("syntax error");
    expect(() => run("SCAN", 0, "WITHTYPE", 1)).toThrow("syntax error");
  });

  test("INCR counts, and keeps the ttl", () => {
    const { run } = engineAt();
    expect(run("INCR", "k")).toBe(1);
    run("PEXPIRE", "k", 10);
    expect([run("INCR", "k"), run("PTTL", "k")]).toEqual([2, 10]);
    run("SET", "k", "x");
    expect(() => run("INCR", "k")).toThrow("not an integer");
  });

  test("GETRANGE counts from both ends", () => {
    const { run } = engineAt();
    run("SET", "k", "abcdef");
    const ranges = [
      [1, 2],
      [-2, -1],
      [4, 99],
      [-99, 0],
    ] as const;
    expect(ranges.map(([from, to]) => run("GETRANGE", "k", from, to))).toEqual(["bc", "ef", "ef", "a"]);
    expect(run("GETRANGE", "none", 0, 9)).toBe("");
  });
});
