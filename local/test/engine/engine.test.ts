import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { Engine, ReplyError } from "../../src/engine/engine.ts";
import { sha1 } from "../../src/engine/lua/sha1.ts";

function engineAt(start = 1_763_714_567_890) {
  const clock = { now: start };
  const engine = new Engine({ now: () => clock.now });
  return { clock, engine, run: (...command: (string | number)[]) => engine.execute(command) };
}

function errorOf(action: () => unknown): string {
  try {
    action();
  } catch (error) {
    expect(error).toBeInstanceOf(ReplyError);
    return (error as Error).message;
  }
  throw new Error("expected an error reply");
}

describe("Engine", () => {
  it("uses the system's clock by default", () => {
    const engine = new Engine();
    const before = Math.floor(Date.now() / 1000);
    const [seconds] = engine.execute(["TIME"]) as [string, string];
    expect(Number(seconds)).toBeGreaterThanOrEqual(before);
  });

  it("accepts commands in any case, and numbers as arguments", () => {
    const { run } = engineAt();
    expect(run("set", "k", 5)).toBe("OK");
    expect(run("GET", "k")).toBe("5");
    expect(run("Incr", "k")).toBe(6);
  });

  it("refuses unknown commands and wrong numbers of arguments with Redis's errors", () => {
    const { run } = engineAt();
    expect(errorOf(() => run("NOPE", "a", "b c"))).toBe(
      "ERR unknown command 'NOPE', with args beginning with: 'a' 'b c' ",
    );
    expect(errorOf(() => run("GET"))).toBe("ERR wrong number of arguments for 'get' command");
    expect(errorOf(() => run("toString"))).toMatch(/^ERR unknown command 'toString'/);
    expect(errorOf(() => run())).toBe("ERR empty command");
  });

  it("answers TIME by its clock", () => {
    const { clock, run } = engineAt(1_763_714_567_890);
    expect(run("TIME")).toEqual(["1763714567", "890000"]);
    clock.now = 1_763_714_568_001.7;
    expect(run("TIME")).toEqual(["1763714568", "1000"]);
  });
});

describe("Engine: expiry", () => {
  it("keeps a key until the last ms before its deadline", () => {
    const { clock, run } = engineAt();
    run("SET", "k", "v", "PX", 1000);
    clock.now += 999;
    expect(run("GET", "k")).toBe("v");
    expect(run("PTTL", "k")).toBe(1);
    clock.now += 1;
    expect(run("GET", "k")).toBeNull();
    expect(run("PTTL", "k")).toBe(-2);
    expect(run("DBSIZE")).toBe(0);
    expect(run("SET", "k", "w", "NX")).toBe("OK");
    expect(run("PTTL", "k")).toBe(-1);
  });

  it("expires keys of every type, also in lists of keys", () => {
    const { clock, run } = engineAt();
    run("SADD", "set", "a");
    run("HSET", "hash", "f", "v");
    run("SET", "stays", "v");
    run("PEXPIRE", "set", 10);
    run("PEXPIRE", "hash", 10);
    clock.now += 10;
    expect(run("KEYS", "*")).toEqual(["stays"]);
    expect(run("SCAN", 0)).toEqual(["0", ["stays"]]);
    expect(run("SADD", "set", "a")).toBe(1);
    expect(run("PTTL", "set")).toBe(-1);
  });

  it("keeps the absolute deadline when the clock is set back", () => {
    const { clock, run } = engineAt();
    run("SET", "k", "v", "PX", 1000);
    clock.now -= 5000;
    expect(run("PTTL", "k")).toBe(6000);
    expect(run("PEXPIRETIME", "k")).toBe(clock.now + 6000);
  });

  it("reads the clock once per command, so that nothing expires inside a script", () => {
    let now = 1000;
    const engine = new Engine({ now: () => now++ });
    engine.execute(["SET", "k", "v", "PX", 2]);
    const script =
      "return {redis.call('PTTL', KEYS[1]), redis.call('PTTL', KEYS[1]), redis.call('GET', KEYS[1])}";
    expect(engine.execute(["EVAL", script, 1, "k"])).toEqual([1, 1, "v"]);
    expect(engine.execute(["GET", "k"])).toBeNull();
  });
});

describe("Engine: strings are bytes", () => {
  it("counts and slices the bytes of UTF-8", () => {
    const { run } = engineAt();
    run("SET", "k", "é€😀");
    expect(run("STRLEN", "k")).toBe(9);
    expect(run("GETRANGE", "k", 0, 1)).toBe("é");
    expect(run("GETRANGE", "k", 2, 4)).toBe("€");
    expect(run("GETRANGE", "k", 0, 0)).toBe("\ufffd");
    expect(run("SETRANGE", "k", 0, "xy")).toBe(9);
    expect(run("GET", "k")).toBe("xy€😀");
    expect(run("EVAL", "return #ARGV[1]", 0, "é€😀")).toBe(9);
    expect(run("EVAL", "return string.sub(ARGV[1], 3, 5)", 0, "é€😀")).toBe("€");
  });

  it("supports UTF-8 in keys, members and errors", () => {
    const { run } = engineAt();
    run("HSET", "schlüssel", "größe", "1");
    expect(run("HGETALL", "schlüssel")).toEqual(["größe", "1"]);
    expect(run("KEYS", "schl*")).toEqual(["schlüssel"]);
    expect(errorOf(() => run("grüße"))).toContain("'grüße'");
  });

  it("computes SHA-1 of bytes for every length of the last block", () => {
    for (let length = 0; length < 200; length++) {
      const text = "aé".repeat(100).slice(0, length);
      const expected = createHash("sha1").update(text).digest("hex");
      expect(sha1(Buffer.from(text).toString("latin1")), `length ${length}`).toBe(expected);
    }
  });
});

describe("Engine: dialects", () => {
  it("shares its conditions with the redis-8.4 dialect, and nothing that only Upstash has", () => {
    const engine = new Engine({ dialect: "redis-8.4" });
    const run = (...command: string[]) => engine.execute(command);
    run("SET", "k", "v");
    expect(run("SET", "k", "w", "IFEQ", "v")).toBe("OK");
    expect(run("EVAL", "return redis.call('DELEX', KEYS[1], 'IFEQ', 'v')", "1", "k")).toBe(0);
    expect(run("DELEX", "k", "IFEQ", "w")).toBe(1);
    run("HSET", "h", "field", "1");
    expect(run("HPEXPIRE", "h", "1000", "FIELDS", "1", "field")).toEqual([1]);
    expect(errorOf(() => run("EVAL", "#!lua flags=allow-key-locking\nreturn 1", "0"))).toBe(
      "ERR Unexpected flag in script shebang: allow-key-locking",
    );
    expect(errorOf(() => run("SCAN", "0", "WITHTYPE"))).toBe("ERR syntax error");
  });

  it("is refused in the redis dialect", () => {
    const engine = new Engine({ dialect: "redis" });
    expect(errorOf(() => engine.execute(["SET", "k", "v", "IFEQ", "w"]))).toBe("ERR syntax error");
    expect(errorOf(() => engine.execute(["DELEX", "k"]))).toMatch(/^ERR unknown command 'DELEX'/);
    expect(errorOf(() => engine.execute(["EVAL", "return redis.call('DELEX', 'k')", 0]))).toMatch(
      /^ERR Unknown Redis command called from script/,
    );
    expect(errorOf(() => engine.execute(["EVAL", "#!lua flags=allow-key-locking\nreturn 1", 0]))).toBe(
      "ERR Unexpected flag in script shebang: allow-key-locking",
    );
    expect(errorOf(() => engine.execute(["EVAL", "#!lua name=x\nreturn 1", 0]))).toBe(
      "ERR Unknown lua shebang option: name=x",
    );
  });
});

describe("Engine: flush", () => {
  it("deletes data and cached scripts", () => {
    const { engine, run } = engineAt();
    run("SET", "k", "v");
    const sha = String(run("SCRIPT", "LOAD", "return 1"));
    expect(run("SCRIPT", "EXISTS", sha, sha.toUpperCase(), "x")).toEqual([1, 1, 0]);
    engine.flush();
    expect(run("GET", "k")).toBeNull();
    expect(errorOf(() => run("EVALSHA", sha, 0))).toBe("NOSCRIPT No matching script. Please use EVAL.");
    expect(run("EVAL", "return 1", 0)).toBe(1);
    expect(run("EVALSHA", sha.toUpperCase(), 0)).toBe(1);
    run("SCRIPT", "FLUSH", "SYNC");
    expect(run("SCRIPT", "EXISTS", sha)).toEqual([0]);
  });

  it("forgets every script each time, however many there are, and runs each again", () => {
    const { run } = engineAt();
    // More than are kept compiled.
    const scripts = Array.from({ length: 50 }, (_, index) => `return ${index}`);
    for (let round = 0; round < 3; round++) {
      for (const [index, script] of scripts.entries()) expect(run("EVAL", script, 0)).toBe(index);
      const shas = scripts.map((script) => String(run("SCRIPT", "LOAD", script)));
      for (const [index, sha] of shas.entries()) expect(run("EVALSHA", sha, 0)).toBe(index);
      run("SCRIPT", "FLUSH");
      expect(run("SCRIPT", "EXISTS", ...shas)).toEqual(shas.map(() => 0));
      expect(errorOf(() => run("EVALSHA", shas[49]!, 0))).toContain("NOSCRIPT");
    }
  });
});

describe("Engine: SCAN", () => {
  it("returns every key that exists all the time exactly once, despite writes in between", () => {
    const { run } = engineAt();
    const stays = Array.from({ length: 100 }, (_, index) => `stays:${index}`);
    for (const key of stays) run("SET", key, "v");
    for (let index = 0; index < 50; index++) run("SET", `goes:${index}`, "v");
    const found: string[] = [];
    let cursor = "0";
    let page = 0;
    do {
      const [next, keys] = run("SCAN", cursor, "MATCH", "stays:*", "COUNT", 7) as [string, string[]];
      found.push(...keys);
      cursor = next;
      run("DEL", `goes:${page}`);
      run("SET", `new:${page}`, "v");
      run("SET", stays[page % 100]!, "again");
      page++;
    } while (cursor !== "0");
    expect(found.sort()).toEqual(stays.sort());
  });

  it("filters by type", () => {
    const { run } = engineAt();
    run("SET", "string", "v");
    run("LPUSH", "list", "v");
    expect(run("SCAN", 0, "TYPE", "list")).toEqual(["0", ["list"]]);
  });
});
