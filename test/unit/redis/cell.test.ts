import { describe, expect, test } from "vitest";
import { Deadline } from "../../../src/endpoints/deadline.ts";
import type { Command, Dialect } from "../../../src/endpoints/endpoint.ts";
import type { EndpointRequest } from "../../../src/endpoints/endpoint-request.ts";
import { EndpointError } from "../../../src/errors.ts";
import { cellScript } from "../../../src/redis/cell.lua.ts";
import {
  acquire,
  acquireOrRead,
  type Cell,
  type CellAnswer,
  extend,
  raiseFence,
  readCounter,
  release,
  restore,
} from "../../../src/redis/cell.ts";
import { runScript, shaOf, textOf } from "../../../src/redis/script.ts";

const plain: Cell = { keys: ["k"], value: "tv" };
const full: Cell = { keys: ["k1", "k2"], value: "tv", tombstone: "void", counters: ["f1", "f2"] };
const dialects: readonly Dialect[] = ["redis", "redis-8.4", "upstash"];
const redisError = (message: string) => new EndpointError("e", "redis", message);

/** A call to an endpoint that gives `replies` in turn. */
function rig(replies: unknown[], { dialect = "upstash" as Dialect, exactReplies = true } = {}) {
  const sent: Command[] = [];
  const call: EndpointRequest = {
    endpoint: {
      name: "e",
      dialect,
      exactReplies,
      async send(command) {
        sent.push(command);
        const reply = replies.shift();
        if (reply instanceof Error) throw reply;
        return reply;
      },
    },
    deadline: new Deadline(),
    cost: { requests: 0, commands: 0 },
  };
  return { call, sent };
}

/** The script by its text, as it is sent to an endpoint that has not answered it yet. */
const byText = (dialect: Dialect, keys: readonly string[], ...args: (string | number)[]) => [
  "EVAL",
  textOf(cellScript.source, dialect),
  keys.length,
  ...keys,
  ...args,
];

/** The same by its hash. */
const byHash = (dialect: Dialect, keys: readonly string[], ...args: (string | number)[]) => [
  "EVALSHA",
  shaOf(cellScript, dialect),
  keys.length,
  ...keys,
  ...args,
];

describe("commands", () => {
  type Operation = (call: EndpointRequest) => Promise<CellAnswer>;
  const sets: Operation = (call) => acquire(call, plain, 50);
  const looks: Operation = (call) => acquire(call, plain, 50, { looks: true });
  const reads: Operation = (call) => acquireOrRead(call, plain, 50);
  const extends50: Operation = (call) => extend(call, plain, 50);
  const [granted, lost] = [{ outcome: "granted" }, { outcome: "lost" }] as const;
  const held = (other: string) => ({ outcome: "held", other });

  test.each<[Operation, command: string, reply: unknown, CellAnswer | object]>([
    [sets, "SET k tv NX PX 50", "OK", granted],
    [sets, "SET k tv NX PX 50", null, { outcome: "held" }],
    [looks, "SET k tv NX GET PX 50", "tx", held("tx")],
    [looks, "SET k tv NX GET PX 50", "tv", held("tv")],
    [reads, "SET k tv NX GET PX 50", "tv", granted],
    [reads, "SET k tv NX GET PX 50", "tx", held("tx")],
    [reads, "SET k tv NX GET PX 50", "", held("")],
    [extends50, "SET k tv IFEQ tv PX 50", "OK", granted],
    [extends50, "SET k tv IFEQ tv PX 50", null, lost],
    [(call) => extend(call, plain, 50, "tw"), "SET k tw IFEQ tv PX 50", "OK", granted],
    [(call) => release(call, plain), "DELEX k IFEQ tv", 1, granted],
    [(call) => release(call, plain), "DELEX k IFEQ tv", 0, lost],
  ])("%o sends %s, and %j means %j", async (perform, command, reply, expected) => {
    for (const dialect of ["upstash", "redis-8.4"] as const) {
      const { call, sent } = rig([reply], { dialect });
      expect(await perform(call)).toEqual(expected);
      expect(sent.map((words) => words.join(" "))).toEqual([command]);
      expect(call.cost).toEqual({ requests: 1, commands: 1 });
    }
    for (const other of [{}, [], true, 7, undefined]) {
      await expect(perform(rig([other]).call)).rejects.toThrow(/unexpected reply/);
    }
  });

  describe("where Redis does not know NX with GET", () => {
    const unknown = () => redisError("ERR syntax error");
    const plainAcquire = ["SET", "k", "tv", "NX", "PX", 50];

    test("acquireOrRead falls back to the script, and does not ask again", async () => {
      const { call, sent } = rig([unknown(), ["tv", "0"], ["tv", "0"]], { dialect: "redis" });
      const args: [string[], ...(string | number)[]] = [["k"], "acquire", "tv", 1, 1, 50, "tv", 0, 0];
      expect(await acquireOrRead(call, plain, 50)).toEqual({ outcome: "granted" });
      expect(await acquireOrRead(call, plain, 50)).toEqual({ outcome: "granted" });
      expect(sent.slice(1)).toEqual([byText("redis", ...args), byHash("redis", ...args)]);
    });

    test("an acquire that looks acquires without looking, and does not ask again", async () => {
      const { call, sent } = rig([unknown(), null, "OK"], { dialect: "redis" });
      expect(await acquire(call, plain, 50, { looks: true })).toEqual({ outcome: "held" });
      expect(call.cost).toEqual({ requests: 2, commands: 2 });
      expect(await acquire(call, plain, 50, { looks: true })).toEqual({ outcome: "granted" });
      expect(sent.slice(1)).toEqual([plainAcquire, plainAcquire]);
    });

    test("nothing else is taken for that", async () => {
      const { call, sent } = rig([redisError("OOM command not allowed"), null, "tv"]);
      await expect(acquireOrRead(call, plain, 50)).rejects.toThrow("OOM");
      expect(await acquireOrRead(call, plain, 50)).toEqual({ outcome: "granted" });
      expect(sent[1]).toContain("GET");
    });
  });
});

describe.each<[what: string, perform: (call: EndpointRequest, cell: Cell) => Promise<CellAnswer>]>([
  ["an acquire that looks", (call, cell) => acquire(call, cell, 50, { looks: true })],
  ["acquireOrRead", (call, cell) => acquireOrRead(call, cell, 50)],
])("null in answer to %s", (_what, perform) => {
  const granted = { outcome: "granted" };
  const cells = ["t1", "t2", "t3"].map((value): Cell => ({ keys: ["k"], value }));

  test("proves nothing until the endpoint has returned what it has stored, once", async () => {
    const { call, sent } = rig([null, "t1", null]);
    expect(await perform(call, cells[0]!)).toEqual(granted);
    expect(call.cost).toEqual({ requests: 2, commands: 2 });
    expect(await perform(call, cells[1]!)).toEqual(granted);
    expect(sent.map(([, , value]) => value)).toEqual(["t1", "t1", "t2"]);
  });

  test("is believed where the endpoint has returned another's value before", async () => {
    const { call, sent } = rig(["tx", null]);
    expect(await perform(call, cells[0]!)).toEqual({ outcome: "held", other: "tx" });
    expect(await perform(call, cells[1]!)).toEqual(granted);
    expect(sent).toHaveLength(2);
  });

  test("is a refusal where another's value has taken its place", async () => {
    const { call } = rig([null, "tx"]);
    expect(await perform(call, cells[0]!)).toEqual({ outcome: "held", other: "tx" });
  });

  test.each([
    ["to everything", [null, null, null, null]],
    ["by a server that ignores GET", ["OK", null, null]],
  ])("is an error: %s", async (_how, replies) => {
    const { call } = rig(replies);
    if (replies[0] === "OK") await perform(call, cells[0]!);
    await expect(perform(call, cells[1]!)).rejects.toThrow("has not stored the value");
    if (replies.length === 4) await expect(perform(call, cells[2]!)).rejects.toThrow("has not stored");
  });
});

describe("scripts", () => {
  const granted = { outcome: "granted" };

  test.each<
    [what: string, perform: (call: EndpointRequest) => Promise<CellAnswer>, keys: string[], args: Command]
  >([
    ["extend", (call) => extend(call, plain, 50, "tw"), ["k"], ["extend", "tv", 1, 1, 50, "tw", 0, 0]],
    ["release", (call) => release(call, plain), ["k"], ["release", "tv", 1, 1, 0, "", 0, 0]],
    ["look", (call) => extend(call, plain, 0), ["k"], ["extend", "tv", 1, 1, 0, "tv", 0, 0]],
  ])("do %s in the redis dialect", async (_what, perform, keys, args) => {
    const { call, sent } = rig([["tv", "0"]], { dialect: "redis" });
    expect(await perform(call)).toEqual(granted);
    expect(sent).toEqual([byText("redis", keys, ...args)]);
  });

  test("do everything where replies are not exact", async () => {
    for (const perform of [acquire, acquireOrRead, extend, release]) {
      const { call, sent } = rig([["tv", "0"]], { exactReplies: false });
      expect(await perform(call, plain, 50)).toEqual(granted);
      expect(sent[0]![0]).toBe("EVAL");
    }
  });

  test.each<[what: string, perform: (call: EndpointRequest) => Promise<CellAnswer>]>([
    ["for several keys", (call) => acquire(call, { keys: ["k1", "k2"], value: "tv" }, 50)],
    ["for an owner's value", (call) => acquire(call, { keys: ["k"], value: "tv", compareFrom: 2 }, 50)],
    ["for a tombstone", (call) => acquire(call, { keys: ["k"], value: "tv", tombstone: "void" }, 50)],
    ["to look without a ttl", (call) => extend(call, plain, 0)],
    ["to restore", (call) => restore(call, plain, 50)],
  ])("are needed %s, also where there are native commands", async (_what, perform) => {
    const { call, sent } = rig([["tv", "0"]]);
    expect(await perform(call)).toEqual(granted);
    expect(sent[0]![0]).toBe("EVAL");
  });

  test("name no counter where there is none, and say what they do", async () => {
    const { call, sent } = rig([["tv", "7"]]);
    await restore(call, { ...plain, tombstone: "void" }, 50, { least: 7, retention: 9_000 });
    expect(sent).toEqual([byText("upstash", ["k", "void"], "restore", "tv", 1, 1, 50, "tv", 7, 9_000)]);
  });

  test("name keys, tombstone and counters, in this order", async () => {
    const { call, sent } = rig([["tv", "1700"]]);
    const fencing = { least: 1_700, retention: 9_000 };
    expect(await acquire(call, full, 50, { fencing })).toEqual({ outcome: "granted", fence: 1_700 });
    const keys = ["k1", "k2", "void", "f1", "f2"];
    expect(sent).toEqual([byText("upstash", keys, "acquire", "tv", 1, 2, 50, "tv", 1_700, 9_000)]);
    // The script, what it reads, the clock, and what it writes: two keys and two counters.
    expect(call.cost).toEqual({ requests: 1, commands: 7 });
  });

  test("raise counters without touching the keys", async () => {
    const { call, sent } = rig([["tv", "1800"]]);
    const answer = await raiseFence(call, full, { least: 1_800, retention: 9_000 });
    expect(answer).toEqual({ outcome: "granted", fence: 1_800 });
    expect(sent[0]!.slice(8)).toEqual(["extend", "tv", 1, 2, 0, "tv", 1_800, 9_000]);
  });

  test("return the value that holds the lock", async () => {
    const { call } = rig([[0, 320, "tother"]]);
    expect(await acquire(call, full, 50)).toEqual({ outcome: "held", retryAfter: 320, other: "tother" });
    const lost = rig([[0, -3, ""]], { dialect: "redis" });
    expect(await extend(lost.call, plain, 50)).toEqual({ outcome: "lost", other: "" });
  });
});

describe("the handleTags of an owner's cell", () => {
  const owned: Cell = { keys: ["k1", "k2"], value: "t1own", compareFrom: 3 };

  test("are returned where the script returns them, one for each key", async () => {
    const { call } = rig([["t1own", "0", "t1s2"]]);
    expect(await acquire(call, owned, 50)).toEqual({ outcome: "granted", handleTags: "t1s2" });
    const fenced = rig([["t1own", "7", "t1s2"]]);
    const fencing = { least: 1, retention: 9_000 };
    const answer = await acquire(fenced.call, { ...owned, counters: ["f"] }, 50, { fencing });
    expect(answer).toEqual({ outcome: "granted", fence: 7, handleTags: "t1s2" });
  });

  test.each([undefined, "", "t1", "t1s2t", "t1 2", "T1s2", 1234])("%j is none", async (handleTags) => {
    expect(await acquire(rig([["t1own", "0", handleTags]]).call, owned, 50)).toEqual({ outcome: "granted" });
  });

  test("do not exist where values are compared whole", async () => {
    expect(await acquire(rig([["tv", "0", ""]]).call, full, 50)).toEqual({ outcome: "granted" });
  });

  test("that a release names are those given, or the value's own at every key", async () => {
    const { call, sent } = rig([["t1own"], ["t1own"]]);
    await release(call, owned);
    await release(call, { ...owned, handleTags: "s1t2" }, 60_000);
    expect(sent.map((command) => command.slice(5))).toEqual([
      ["release", "t1own", 3, 2, 0, "t1t1", 0, 0],
      ["release", "t1own", 3, 2, 60_000, "s1t2", 0, 0],
    ]);
  });

  test("that differ are the reply to a release, which then has deleted nothing", async () => {
    expect(await release(rig([[0, "s1--"]]).call, owned)).toEqual({ outcome: "lost", handleTags: "s1--" });
    expect(await release(rig([[0]]).call, owned)).toEqual({ outcome: "lost" });
    for (const reply of [[0, "s1"], [0, 5], [0, "s1--", 1], [1], [1, "s1--"], []]) {
      await expect(release(rig([reply]).call, owned)).rejects.toThrow(/unexpected reply/);
    }
  });
});

describe("a refusal", () => {
  test.each([
    [[0, 5]],
    [[0, 5, "x", 1]],
    [[1, 5, "x"]],
    [[0, "5", "x"]],
    [[0, 5.5, "x"]],
    [[0, 5, 7]],
    [[0, 5, null]],
  ])("has one form only, where replies are exact: not %j", async (reply) => {
    await expect(acquire(rig([reply]).call, full, 50)).rejects.toThrow(/unexpected reply/);
  });

  test("may have a value that a client in between has parsed", async () => {
    const { call } = rig([[0, 5, { parsed: true }]], { exactReplies: false });
    expect(await acquire(call, full, 50)).toMatchObject({ outcome: "held", retryAfter: 5 });
    const odd = rig([[0, "5", "x"]], { exactReplies: false });
    await expect(acquire(odd.call, full, 50)).rejects.toThrow(/unexpected reply/);
  });
});

test.each([
  ["1", 1],
  ["007", 7],
  [7, 7],
  [Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER],
  [0, undefined],
  [-7, undefined],
  [1.5, undefined],
  ["", undefined],
  ["7x", undefined],
  ["7.0", undefined],
  ["7e3", undefined],
  ["0x7", undefined],
  [" 7", undefined],
  ["7\n", undefined],
  ["x7", undefined],
  ["+7", undefined],
  [[7], undefined],
  [true, undefined],
  [null, undefined],
])("readCounter reads %j as %j", (word, counter) => {
  expect(readCounter(word)).toBe(counter);
});

describe("runScript", () => {
  const noscript = () => redisError("HTTP 400, NOSCRIPT No matching script.");
  const names = (sent: readonly Command[]) => sent.map(([name]) => name);

  test.each(dialects)("sends the text until it is answered, then the hash: %s", async (dialect) => {
    const { call, sent } = rig([new EndpointError("e", "timeout", "no answer"), "a", "b"], { dialect });
    await expect(runScript(call, cellScript, ["k"], [1])).rejects.toThrow("no answer");
    expect(await runScript(call, cellScript, ["k"], [1])).toBe("a");
    expect(await runScript(call, cellScript, ["k"], [1])).toBe("b");
    const text = byText(dialect, ["k"], 1);
    expect(sent).toEqual([text, text, byHash(dialect, ["k"], 1)]);
    expect(call.cost).toEqual({ requests: 3, commands: 3 });
  });

  test("of many at the same time, one sends the text, and none waits for it", async () => {
    const { call, sent } = rig(["a", "b", "c"]);
    const all = [1, 2, 3].map((number) => runScript(call, cellScript, [], [number]));
    expect(names(sent)).toEqual(["EVAL", "EVALSHA", "EVALSHA"]);
    expect(await Promise.all(all)).toEqual(["a", "b", "c"]);
  });

  test("one that another's text does not reach sends its own in the end", async () => {
    const { call, sent } = rig([new Promise(() => undefined), noscript(), noscript(), "b"]);
    void runScript(call, cellScript, [], []);
    expect(await runScript(call, cellScript, [], [])).toBe("b");
    expect(names(sent)).toEqual(["EVAL", "EVALSHA", "EVALSHA", "EVAL"]);
  });

  test("undoes what is unanswered by the text, whatever the endpoint knows", async () => {
    const { call, sent } = rig(["a", "b"]);
    await runScript(call, cellScript, [], []);
    await runScript({ ...call, sendsText: true }, cellScript, [], []);
    expect(names(sent)).toEqual(["EVAL", "EVAL"]);
  });

  test("NOSCRIPT counts as not sent, but not what was sent before it", async () => {
    const { call } = rig(["a", noscript(), new Promise(() => undefined)]);
    await runScript(call, cellScript, [], []);
    const fresh = { ...call, sent: 0 };
    const late = runScript(fresh, cellScript, [], []);
    fresh.deadline.abort();
    await expect(late).rejects.toThrow("not sent in time");
    expect([fresh.sent, call.sent]).toEqual([0, 1]);
  });
});
