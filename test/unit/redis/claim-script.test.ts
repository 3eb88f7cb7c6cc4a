import { describe, expect, test } from "vitest";
import { Engine, memoryEndpoint } from "../../../local/src/memory/index.ts";
import { claimScript } from "../../../src/redis/claim.lua.ts";

// What the script stores, replies and is billed, to the millisecond; and what it does where a command is missing: nothing
// else shows that, because all servers of the tests have them.

/** Redis before 7.0 has NX and GET, but not together. */
const before7 = `local newer = redis
local redis = {
  call = newer.call,
  pcall = function(...)
    local words = table.concat({...}, " ")
    if string.find(words, "GET NX", 1, true) then return {err = "ERR syntax error"} end
    return newer.pcall(...)
  end,
}
`;
const keys = ["record", "lock", "counter"];

function operate(prelude: string, native: 0 | 1) {
  const engine = new Engine({ dialect: "redis", now: () => 1_700_000_000_000 });
  const run = (operation: string, next = "", token = "t1", pending = `P ${token}`) =>
    engine.execute([
      "EVAL",
      prelude + claimScript.source,
      3,
      ...keys,
      operation,
      pending,
      token,
      1,
      operation === "end" ? 60_000 : 1_000,
      next,
      5_000,
      10_000,
      native,
    ]) as unknown[];
  const values = () => engine.execute(["MGET", ...keys]);
  return { engine, run, values };
}

describe.each([
  ["Redis 7", "", 0],
  ["Redis before 7.0", before7, 0],
  ["an endpoint without compare-and-set", "", 1],
] as const)("the script of a claim on %s", (_, prelude, native) => {
  test("begins, refuses another run, and ends", () => {
    const { run, values } = operate(prelude, native);
    const begun = run("begin");
    expect([begun[0], begun[2]]).toEqual(["t1", "5000"]);
    expect(values()).toEqual(["P t1", "t1", "5000"]);
    expect(run("begin").slice(2)).toEqual(["5001"]);
    expect(run("begin", "", "t2").slice(2)).toEqual(["r", "P t1"]);
    expect(run("end", "C", "t2")[0]).toBe(0);
    expect(run("end", "C")[0]).toBe("t1");
    expect(values()).toEqual(["C", null, "5001"]);
    expect(run("end", "C")[0]).toBe(0);
  });

  test("leaves nothing where the lock is held, and deletes only its own", () => {
    const { engine, run, values } = operate(prelude, native);
    engine.execute(["SET", "lock", "other", "PX", 700]);
    expect(run("begin").slice(2)).toEqual(["l", expect.any(Number), "other"]);
    expect(run("end")[0]).toBe(0);
    expect(values()).toEqual([null, "other", null]);
    engine.execute(["DEL", "lock"]);
    run("begin");
    expect(run("end")[0]).toBe("t1");
    expect(values()).toEqual([null, null, "5000"]);
  });

  test("draws from a counter that is there, and extends with it", () => {
    const { engine, run, values } = operate(prelude, native);
    for (const [counter, drawn] of [
      ["7", "5000"],
      ["7000", "7001"],
    ] as const) {
      engine.execute(["FLUSHALL"]);
      engine.execute(["SET", "counter", counter, "PX", 50]);
      expect(run("begin")[2]).toBe(drawn);
      expect(values()).toEqual(["P t1", "t1", drawn]);
    }
    engine.execute(["DEL", "counter"]);
    expect(run("extend")[2]).toBe("5000");
    expect(values()).toEqual(["P t1", "t1", "5000"]);
    // A fence in the past of this engine's clock.
    expect(engine.execute(["PTTL", "counter"])).toBeLessThanOrEqual(10_000);
  });
});

describe("the script of a claim with two locks", () => {
  const start = 1_700_000_000_999;
  const names = ["record", "lock1", "lock2", "counter1", "counter2"];
  type Stored = Readonly<Record<string, readonly [value: string, ms: number]>>;

  /** Runs an operation where this is stored; returns its reply, and what is stored after it. */
  function run(
    stored: Stored,
    operation: string,
    more: { ttl?: number; next?: string; counters?: number; least?: number } = {},
  ) {
    const { ttl = 1_000, next = "", counters = 2, least = start + 200 } = more;
    const engine = new Engine({ dialect: "redis", now: () => start + 0.9 });
    for (const [key, [value, ms]] of Object.entries(stored)) {
      engine.execute(["SET", key, value, "PX", ms]);
    }
    const keys = names.slice(0, 3 + counters);
    const args = [operation, "P", "t", 2, ttl, next, least, 10_000, 0];
    const reply = engine.execute(["EVAL", claimScript.source, keys.length, ...keys, ...args]);
    const after: Record<string, readonly [string, number]> = {};
    for (const key of names) {
      const value = engine.execute(["GET", key]) as string | null;
      if (value !== null) after[key] = [value, engine.execute(["PTTL", key]) as number];
    }
    return { reply, after };
  }

  const own: Stored = { record: ["P", 300], lock1: ["t", 300], lock2: ["t", 300] };
  const begun: Stored = { record: ["P", 1_000], lock1: ["t", 1_000], lock2: ["t", 1_000] };
  /** Both counters at so many ms from now: they expire once the endpoint's clock has passed it, and the retention. */
  const counted = (ms: number): Stored => {
    const counter = [`${start + ms}`, 10_000 + Math.max(0, ms)] as const;
    return { counter1: counter, counter2: counter };
  };

  test.each<[what: string, stored: Stored, reply: unknown[], after: Stored]>([
    ["draws the lowest fence", {}, ["t", 6, `${start + 200}`], { ...begun, ...counted(200) }],
    [
      "draws one more than the highest counter",
      { counter1: [`${start + 4_000}`, 50], counter2: [`${start + 300}`, 50] },
      ["t", 8, `${start + 4_001}`],
      { ...begun, ...counted(4_001) },
    ],
    [
      "draws the lowest fence where the counters are behind it",
      { counter1: ["7", 50], counter2: [`${start + 199}`, 50] },
      ["t", 6, `${start + 200}`],
      { ...begun, ...counted(200) },
    ],
    ["leaves what is its own as it is", own, ["t", 6, `${start + 200}`], { ...own, ...counted(200) }],
    ["is refused by a record", { record: ["Q", 50] }, [0, 1, "r", "Q"], { record: ["Q", 50] }],
    ["is refused by a lock", { lock2: ["u", 50] }, [0, 5, "l", 50, "u"], { lock2: ["u", 50] }],
    [
      "is refused by a lock, and leaves its own record",
      { record: ["P", 70], lock1: ["u", 50] },
      [0, 3, "l", 50, "u"],
      { record: ["P", 70], lock1: ["u", 50] },
    ],
  ])("a begin %s", (_, stored, reply, after) => {
    expect(run(stored, "begin")).toEqual({ reply, after });
  });

  test("a begin leaves a counter that is not a number, and returns it", () => {
    const { reply, after } = run({ counter2: ["odd", 50] }, "begin");
    expect(reply).toEqual(["t", 7, "odd"]);
    expect(after).toEqual({ ...begun, ...counted(200), counter2: ["odd", 10_200] });
  });

  test("a fence of the past is kept for the retention", () => {
    const { after } = run({}, "begin", { least: start - 5_000 });
    expect(after).toMatchObject({ counter1: [`${start - 5_000}`, 10_000] });
  });

  test("an extension gives all of them the ttl, or none", () => {
    expect(run(own, "extend", { counters: 0 })).toEqual({ reply: ["t", 4, `${start + 200}`], after: begun });
    expect(run(own, "extend", { counters: 0, ttl: 0 })).toEqual({
      reply: ["t", 1, `${start + 200}`],
      after: own,
    });
    for (const key of ["record", "lock1", "lock2"]) {
      const { [key]: _, ...rest } = own;
      for (const stored of [rest, { ...rest, [key]: ["other", 300] as const }]) {
        expect(run(stored, "extend"), key).toEqual({ reply: [0, 1], after: stored });
      }
    }
  });

  test.each<[what: string, counters: Stored, ms: number]>([
    ["makes counters that are gone", {}, 200],
    ["raises those that are behind", { counter1: ["7", 50], counter2: [`${start}`, 50] }, 200],
    ["never lowers one", { counter1: [`${start + 4_000}`, 50] }, 4_000],
    ["never lowers the last one", { counter2: [`${start + 4_000}`, 50] }, 4_000],
  ])("an extension %s", (_, counters, ms) => {
    expect(run({ ...own, ...counters }, "extend")).toEqual({
      reply: ["t", 7, `${start + ms}`],
      after: { ...begun, ...counted(ms) },
    });
  });

  test("an end decides each key by its own value", () => {
    const end = (stored: Stored, next: string) => run(stored, "end", { ttl: 60_000, next, counters: 0 });
    expect(end(own, "C")).toEqual({ reply: ["t", 3], after: { record: ["C", 60_000] } });
    expect(end(own, "")).toEqual({ reply: ["t", 2], after: {} });
    const foreignLock = { ...own, lock1: ["u", 50] } as const;
    expect(end(foreignLock, "")).toEqual({ reply: ["t", 2], after: { lock1: ["u", 50] } });
    const foreignRecord = { ...own, record: ["Q", 50] } as const;
    expect(end(foreignRecord, "C")).toEqual({ reply: [0, 2], after: { record: ["Q", 50] } });
    expect(end({}, "C")).toEqual({ reply: [0, 1], after: {} });
    const last = { record: ["Q", 50], lock1: ["u", 50] } as const;
    expect(end(last, "")).toEqual({ reply: [0, 1], after: last });
  });
});

test("with compare-and-set, an end replies whose record it was, and is billed what it calls", () => {
  const { engine } = memoryEndpoint({ name: "e", dialect: "upstash" });
  const end = (next: string) => {
    const args = ["end", "P", "t", 1, 60_000, next, 0, 0, 1];
    return engine.execute(["EVAL", claimScript.source, 2, "record", "lock", ...args]);
  };
  for (const next of ["", "C"]) {
    for (const [record, reply] of [
      ["P", "t"],
      ["Q", 0],
    ] as const) {
      engine.execute(["MSET", "record", record, "lock", "t"]);
      expect(end(next)).toEqual([reply, 2]);
      expect(engine.execute(["MGET", "record", "lock"])).toEqual([reply === 0 ? "Q" : next || null, null]);
    }
    engine.execute(["DEL", "record"]);
    expect(end(next)).toEqual([0, 2]);
  }
});
