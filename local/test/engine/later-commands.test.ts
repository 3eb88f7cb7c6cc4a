import { beforeEach, describe, expect, it } from "vitest";
import { Engine } from "../../src/engine/engine.ts";

// As redis.io describes these commands: Redis 7.0, with which the engine is compared otherwise, does not have them.

let now: number;
let engine: Engine;
const run = (...command: readonly (string | number)[]) => engine.execute(command);

beforeEach(() => {
  now = 1_000_000;
  engine = new Engine({ now: () => now });
  run("HSET", "h", "a", "1", "b", "2", "c", "3");
});

describe("fields of a hash", () => {
  it("expire one by one, and the key with the last", () => {
    expect(run("HEXPIRE", "h", 10, "FIELDS", 2, "a", "x")).toEqual([1, -2]);
    expect(run("HPEXPIREAT", "h", 1_020_000, "FIELDS", 2, "b", "c")).toEqual([1, 1]);
    expect(run("HTTL", "h", "FIELDS", 2, "a", "b")).toEqual([10, 20]);
    expect(run("HPEXPIRETIME", "h", "FIELDS", 1, "a")).toEqual([1_010_000]);
    now = 1_009_999;
    expect(run("HGET", "h", "a")).toBe("1");
    now = 1_010_000;
    expect(run("HGETALL", "h")).toEqual(["b", "2", "c", "3"]);
    expect(run("HLEN", "h")).toBe(2);
    now = 1_020_000;
    expect(run("EXISTS", "h")).toBe(0);
    expect(run("HTTL", "h", "FIELDS", 1, "b")).toEqual([-2]);
  });

  it("keep their deadline when they are counted up, renamed and copied, but not when they are set", () => {
    run("HPEXPIRE", "h", 500, "FIELDS", 2, "a", "b");
    run("HINCRBY", "h", "a", 5);
    run("HSET", "h", "b", "new");
    run("COPY", "h", "copy");
    run("RENAME", "h", "renamed");
    for (const key of ["copy", "renamed"])
      expect(run("HPTTL", key, "FIELDS", 2, "a", "b")).toEqual([500, -1]);
    now += 500;
    expect(run("HKEYS", "copy")).toEqual(["b", "c"]);
  });

  it("get a deadline on a condition", () => {
    const expire = (ms: number, condition: string) =>
      run("HPEXPIRE", "h", ms, condition, "FIELDS", 2, "a", "b");
    run("HPEXPIRE", "h", 100, "FIELDS", 1, "a");
    expect(expire(50, "GT")).toEqual([0, 0]);
    expect(expire(150, "gt")).toEqual([1, 0]);
    expect(expire(150, "XX")).toEqual([1, 0]);
    expect(expire(900, "NX")).toEqual([0, 1]);
    expect(expire(800, "LT")).toEqual([0, 1]);
    expect(run("HPERSIST", "h", "FIELDS", 3, "a", "c", "x")).toEqual([1, -1, -2]);
    expect(run("HPEXPIRE", "h", 0, "FIELDS", 2, "a", "x")).toEqual([2, -2]);
    expect(run("HEXISTS", "h", "a")).toBe(0);
  });

  it("are read and deleted, or read and given a deadline", () => {
    expect(run("HGETDEL", "h", "FIELDS", 2, "a", "x")).toEqual(["1", null]);
    expect(run("HGETEX", "h", "PX", 100, "FIELDS", 2, "b", "x")).toEqual(["2", null]);
    expect(run("HPTTL", "h", "FIELDS", 2, "b", "c")).toEqual([100, -1]);
    expect(run("HGETEX", "h", "PERSIST", "FIELDS", 1, "b")).toEqual(["2"]);
    expect(run("HPTTL", "h", "FIELDS", 1, "b")).toEqual([-1]);
    expect(run("HGETDEL", "h", "FIELDS", 2, "b", "c")).toEqual(["2", "3"]);
    expect(run("EXISTS", "h")).toBe(0);
  });

  it("are set together with a deadline, all or none", () => {
    expect(run("HSETEX", "h", "FNX", "EX", 9, "FIELDS", 2, "a", "x", "d", "y")).toBe(0);
    expect(run("HSETEX", "h", "FXX", "EX", 9, "FIELDS", 2, "a", "x", "b", "y")).toBe(1);
    expect(run("HTTL", "h", "FIELDS", 3, "a", "b", "c")).toEqual([9, 9, -1]);
    expect(run("HSETEX", "h", "KEEPTTL", "FIELDS", 1, "a", "z")).toBe(1);
    expect(run("HTTL", "h", "FIELDS", 1, "a")).toEqual([9]);
    expect(run("HSETEX", "new", "FXX", "FIELDS", 1, "a", "z")).toBe(0);
    expect(run("EXISTS", "new")).toBe(0);
  });

  it("are counted", () => {
    const expire = (...words: readonly (string | number)[]) => run("HEXPIRE", "h", 10, ...words);
    expect(() => expire("FIELDS", 2, "a")).toThrow("must match the number of arguments");
    expect(() => expire("FIELDS", 0, "a")).toThrow("ERR");
    expect(() => expire("NX", "XX", "FIELDS", 1, "a")).toThrow(
      "FIELDS is missing or not at the right position",
    );
    expect(() => run("HEXPIRE", "h", -1, "FIELDS", 1, "a")).toThrow("must be >= 0");
  });

  it("do not expire in the dialect of Redis 7", () => {
    const redis = new Engine({ dialect: "redis" });
    expect(() => redis.execute(["HEXPIRE", "h", 10, "FIELDS", 1, "a"])).toThrow("unknown command");
  });
});

describe("what else Upstash has of later versions", () => {
  it("BITOP DIFF, DIFF1, ANDOR and ONE", () => {
    run("SET", "x", "\x0f");
    run("SET", "y", "\x35");
    run("SET", "z", "\x51");
    const combined = (name: string) => {
      run("BITOP", name, "to", "x", "y", "z");
      return String(run("GET", "to")).charCodeAt(0);
    };
    expect(combined("DIFF")).toBe(0x0f & ~(0x35 | 0x51));
    expect(combined("DIFF1")).toBe((0x35 | 0x51) & ~0x0f);
    expect(combined("ANDOR")).toBe(0x0f & (0x35 | 0x51));
    // In one of the three only.
    expect(combined("ONE")).toBe(0b0110_1010);
    expect(() => run("BITOP", "DIFF", "to", "x")).toThrow("at least two source keys");
  });

  it("XDELEX and XACKDEL", () => {
    for (const id of ["1-0", "2-0", "3-0"]) run("XADD", "s", id, "f", "v");
    run("XGROUP", "CREATE", "s", "g", "0");
    run("XREADGROUP", "GROUP", "g", "me", "COUNT", 2, "STREAMS", "s", ">");
    expect(run("XDELEX", "s", "ACKED", "IDS", 2, "1-0", "3-0")).toEqual([2, 2]);
    expect(run("XACKDEL", "s", "g", "ACKED", "IDS", 2, "1-0", "3-0")).toEqual([1, -1]);
    expect(run("XDELEX", "s", "DELREF", "IDS", 2, "2-0", "9-0")).toEqual([1, -1]);
    expect(run("XPENDING", "s", "g")).toEqual([0, null, null, null]);
    expect(run("XRANGE", "s", "-", "+")).toEqual([["3-0", ["f", "v"]]]);
  });

  it("MEMORY USAGE, more for more", () => {
    run("SET", "s", "1");
    const [small, hash] = [Number(run("MEMORY", "USAGE", "s")), Number(run("MEMORY", "USAGE", "h"))];
    expect(hash).toBeGreaterThan(small);
    run("APPEND", "s", "x".repeat(1_000));
    expect(run("MEMORY", "USAGE", "s", "SAMPLES", 0)).toBe(small + 1_000);
    expect(run("MEMORY", "USAGE", "none")).toBeNull();
  });
});
