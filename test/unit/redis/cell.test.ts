import { describe, expect, test } from "vitest";
import type { Ask } from "../../../src/endpoints/ask.ts";
import type { Command, Dialect, Endpoint } from "../../../src/endpoints/endpoint.ts";
import { type Cell, type CellAnswer, claim, claimOrRead, end, keep } from "../../../src/redis/cell.ts";
import { askOf } from "../../support/ask.ts";

const plain: Cell = { keys: ["k"], value: "tv" };

/** A call to an endpoint that gives `replies` in turn. */
function rig(replies: unknown[], { dialect = "upstash" as Dialect, exactReplies = true } = {}) {
  const sent: Command[] = [];
  const endpoint: Endpoint = {
    name: "e",
    dialect,
    exactReplies,
    async send(command) {
      sent.push(command);
      const reply = replies.shift();
      if (reply instanceof Error) throw reply;
      return reply;
    },
  };
  return { call: askOf(endpoint), sent };
}

describe("commands", () => {
  type Operation = (call: Ask) => Promise<CellAnswer>;
  const sets: Operation = (call) => claim(call, plain, 50);
  const reads: Operation = (call) => claimOrRead(call, plain, 50);
  const extends50: Operation = (call) => keep(call, plain, 50);
  const [granted, lost] = [{ outcome: "granted" }, { outcome: "lost" }] as const;
  const held = (other: string) => ({ outcome: "held", other });

  test.each<[Operation, command: string, reply: unknown, CellAnswer | object]>([
    [sets, "SET k tv NX PX 50", "OK", granted],
    [sets, "SET k tv NX PX 50", null, { outcome: "held" }],
    [reads, "SET k tv NX GET PX 50", "tv", granted],
    [reads, "SET k tv NX GET PX 50", "tx", held("tx")],
    [reads, "SET k tv NX GET PX 50", "", held("")],
    [extends50, "SET k tv IFEQ tv PX 50", "OK", granted],
    [extends50, "SET k tv IFEQ tv PX 50", null, lost],
    [(call) => keep(call, plain, 50, "tw"), "SET k tw IFEQ tv PX 50", "OK", granted],
    [(call) => end(call, plain), "DELEX k IFEQ tv", 1, granted],
    [(call) => end(call, plain), "DELEX k IFEQ tv", 0, lost],
  ])("%o sends %s, and %j means %j", async (perform, command, reply, expected) => {
    for (const dialect of ["upstash", "redis-8.4"] as const) {
      const { call, sent } = rig([reply], { dialect });
      expect(await perform(call)).toEqual(expected);
      expect(sent.map((words) => words.join(" "))).toEqual([command]);
    }
    for (const other of [{}, [], true, 7, undefined]) {
      await expect(perform(rig([other]).call)).rejects.toThrow(/unexpected reply/);
    }
  });
});

describe("the script", () => {
  const full: Cell = {
    keys: ["k1", "k2"],
    value: "tv",
    values: ["P", "tv"],
    tombstone: "void",
    counters: { keys: ["f1", "f2"], least: 1_700, retention: 9_000 },
  };
  const next = { values: ["C"], ttl: 80 };
  type Operation = (call: Ask, cell: Cell) => Promise<CellAnswer>;
  const claims: Operation = (call, cell) => claim(call, cell, 50);
  const keeps: Operation = (call, cell) => keep(call, cell, 50);
  const ends: Operation = (call, cell) => end(call, cell, next);

  test.each<[what: string, perform: (call: Ask) => Promise<CellAnswer>]>([
    ["for several keys", (call) => claim(call, { keys: ["k1", "k2"], value: "tv" }, 50)],
    ["for a tombstone", (call) => claim(call, { keys: ["k"], value: "tv", tombstone: "void" }, 50)],
    ["to look without a ttl", (call) => keep(call, plain, 0)],
  ])("is needed %s, also where there are native commands", async (_what, perform) => {
    const { call, sent } = rig([["tv", "t"]]);
    await perform(call).catch(() => undefined);
    expect(sent[0]![0]).toBe("EVAL");
  });

  test("does everything where replies are not exact", async () => {
    for (const perform of [claims, keeps, ends, claimOrRead]) {
      const { call, sent } = rig([["tv", "t"]], { exactReplies: false });
      await perform(call, plain, 50).catch(() => undefined);
      expect(sent[0]![0]).toBe("EVAL");
    }
  });

  test.each<[Operation, reply: unknown[], CellAnswer]>([
    [claims, ["tv", "1700"], { outcome: "granted", fence: 1_700 }],
    [claims, [0, 1, -2, "Q"], { outcome: "held", other: "Q", retryAfter: -2 }],
    [claims, [0, 2, 320, "tother"], { outcome: "held", other: "tother", retryAfter: 320, blockedBy: 1 }],
    [keeps, [0, 2, -2, "tother"], { outcome: "lost", other: "tother" }],
    [ends, ["tv", "tt"], { outcome: "granted" }],
    [ends, ["tv", "ft"], { outcome: "lost" }],
    [ends, ["tv", "tf"], { outcome: "lost", blockedBy: 1 }],
  ])("%# answers, and %j means %j", async (perform, reply, answer) => {
    expect(await perform(rig([reply]).call, full)).toEqual(answer);
  });

  test.each(
    [
      ...[null, "OK", {}, [], ["tx", "1"], [1, "1"], [0], [0, 1]],
      ...[
        [0, 1, 5],
        [0, 3, 5, "x"],
        [0, -1, 5, "x"],
        [0, "1", 5, "x"],
        [0, 1.5, 5, "x"],
      ],
      ...[
        [0, 1, "5", "x"],
        [0, 1, 5.5, "x"],
        [0, 1, 5, 7],
        [0, 1, 5, null],
      ],
    ].map((reply) => [reply]),
  )("has not replied %j", async (reply) => {
    for (const perform of [claims, keeps, ends]) {
      await expect(perform(rig([reply]).call, full)).rejects.toThrow(/unexpected reply/);
    }
  });

  test("has replied to an end for each key", async () => {
    for (const hits of [undefined, "", "t", "ttt", "tx", 11, ["t", "t"]]) {
      await expect(ends(rig([["tv", hits]]).call, full)).rejects.toThrow(/unexpected reply/);
    }
    await expect(ends(rig([[0, 1, 5, "x"]]).call, full)).rejects.toThrow(/unexpected reply/);
  });

  test("may have returned a value that a client in between has parsed", async () => {
    const { call } = rig([[0, 1, 5, { parsed: true }]], { exactReplies: false });
    expect(await claims(call, full)).toMatchObject({ outcome: "held", retryAfter: 5 });
    const odd = rig([[0, 1, "5", "x"]], { exactReplies: false });
    await expect(claims(odd.call, full)).rejects.toThrow(/unexpected reply/);
  });
});
