import { describe, expect, test } from "vitest";
import { type Call, send } from "../../../src/endpoints/call.ts";
import type { Command, Dialect } from "../../../src/endpoints/endpoint.ts";
import { EndpointError } from "../../../src/errors.ts";
import {
  acquire,
  acquireOrRead,
  extend,
  type Register,
  type RegisterAnswer,
  raiseFence,
  release,
} from "../../../src/redis/register.ts";
import { registerScript } from "../../../src/redis/register-script.ts";
import { runScript, upstashFlag } from "../../../src/redis/script.ts";

const plain: Register = { keys: ["k"], value: "tv" };
const full: Register = { keys: ["k1", "k2"], value: "tv", tombstone: "void", counters: ["f1", "f2"] };
const redisError = (message: string) => new EndpointError("e", "redis", message);

/** A call to an endpoint that gives `replies` in turn. */
function rig(replies: unknown[], { dialect = "upstash" as Dialect, exactReplies = true } = {}) {
  const sent: Command[] = [];
  const call: Call = {
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
    signal: new AbortController().signal,
    cost: { requests: 0, commands: 0 },
  };
  return { call, sent };
}

const evalsha = (dialect: Dialect, keys: string[], ...args: (string | number)[]) => [
  "EVALSHA",
  registerScript.sha[dialect],
  keys.length,
  ...keys,
  ...args,
];

describe("commands", () => {
  type Operation = (call: Call) => Promise<RegisterAnswer>;
  const compareAndSet = ["SET", "k", "tw", "IFEQ", "tv", "PX", 50];
  const rows: [what: string, perform: Operation, command: Command, replies: [unknown, object][]][] = [
    [
      "acquire",
      (call) => acquire(call, plain, 50),
      ["SET", "k", "tv", "NX", "PX", 50],
      [
        ["OK", { outcome: "granted" }],
        [null, { outcome: "held" }],
      ],
    ],
    [
      "acquireOrRead",
      (call) => acquireOrRead(call, plain, 50),
      ["SET", "k", "tv", "NX", "GET", "PX", 50],
      [
        [null, { outcome: "granted" }],
        ["tv", { outcome: "granted" }],
        ["tx", { outcome: "held", other: "tx" }],
        ["", { outcome: "held", other: "" }],
      ],
    ],
    [
      "extend",
      (call) => extend(call, plain, 50),
      ["SET", "k", "tv", "IFEQ", "tv", "PX", 50],
      [
        ["OK", { outcome: "granted" }],
        [null, { outcome: "lost" }],
      ],
    ],
    [
      "extend with a new value",
      (call) => extend(call, plain, 50, "tw"),
      compareAndSet,
      [["OK", { outcome: "granted" }]],
    ],
    [
      "release",
      (call) => release(call, plain),
      ["DELEX", "k", "IFEQ", "tv"],
      [
        [1, { outcome: "granted" }],
        [0, { outcome: "lost" }],
      ],
    ],
  ];

  describe.each(rows)("%s", (_what, perform, command, replies) => {
    test.each(replies)("where the reply is %j", async (reply, expected) => {
      const { call, sent } = rig([reply]);
      expect(await perform(call)).toEqual(expected);
      expect(sent).toEqual([command]);
      expect(call.cost).toEqual({ requests: 1, commands: 1 });
    });

    test("rejects any other reply", async () => {
      for (const reply of [{}, [], true, 7, undefined]) {
        await expect(perform(rig([reply]).call)).rejects.toThrow(/unexpected reply/);
      }
    });
  });

  test("acquireOrRead falls back to the script where Redis does not know NX with GET", async () => {
    const { call, sent } = rig([redisError("ERR syntax error"), ["tv", "0"]], { dialect: "redis" });
    expect(await acquireOrRead(call, plain, 50)).toEqual({ outcome: "granted" });
    expect(sent[1]).toEqual(evalsha("redis", ["k"], "acquire", "tv", 1, 1, 50, "tv", 0, 0));
    const failing = rig([redisError("OOM command not allowed")]);
    await expect(acquireOrRead(failing.call, plain, 50)).rejects.toThrow("OOM");
    expect(failing.sent).toHaveLength(1);
  });
});

describe("scripts", () => {
  const granted = { outcome: "granted" };

  test.each<[what: string, perform: (call: Call) => Promise<RegisterAnswer>, keys: string[], args: Command]>([
    ["extend", (call) => extend(call, plain, 50, "tw"), ["k"], ["extend", "tv", 1, 1, 50, "tw", 0, 0]],
    ["release", (call) => release(call, plain), ["k"], ["release", "tv", 1, 1, 0, "", 0, 0]],
    ["look", (call) => extend(call, plain, 0), ["k"], ["extend", "tv", 1, 1, 0, "tv", 0, 0]],
  ])("do %s in the redis dialect", async (_what, perform, keys, args) => {
    const { call, sent } = rig([["tv", "0"]], { dialect: "redis" });
    expect(await perform(call)).toEqual(granted);
    expect(sent).toEqual([evalsha("redis", keys, ...args)]);
  });

  test("do everything where replies are not exact", async () => {
    for (const perform of [acquire, acquireOrRead, extend, release]) {
      const { call, sent } = rig([["tv", "0"]], { exactReplies: false });
      expect(await perform(call, plain, 50)).toEqual(granted);
      expect(sent[0]![0]).toBe("EVALSHA");
    }
  });

  test("name keys, tombstone and counters, in this order", async () => {
    const { call, sent } = rig([["tv", "1700"]]);
    const fencing = { least: 1_700, retention: 9_000 };
    expect(await acquire(call, full, 50, fencing)).toEqual({ outcome: "granted", fence: 1_700 });
    const keys = ["k1", "k2", "void", "f1", "f2"];
    expect(sent).toEqual([evalsha("upstash", keys, "acquire", "tv", 1, 2, 50, "tv", 1_700, 9_000)]);
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
    expect(await extend(lost.call, plain, 50)).toEqual({ outcome: "lost" });
  });

  test.each([["OK"], [null], [1], [["someone else's", "0"]], [[]], [[1]], [["0", 5]]])(
    "reject a reply that does not echo the value: %j",
    async (reply) => {
      const { call } = rig([reply], { dialect: "redis" });
      await expect(extend(call, plain, 50)).rejects.toThrow(/unexpected reply/);
    },
  );

  test.each(["0", "-1", "1.5", "nan", "9007199254740993", "1e400", undefined])(
    "reject %s as a fence",
    async (fence) => {
      const { call } = rig([["tv", fence]]);
      await expect(acquire(call, full, 50, { least: 1, retention: 9_000 })).rejects.toThrow(/fence/);
    },
  );
});

describe("runScript", () => {
  test.each(["redis", "upstash"] as const)("sends the source after a NOSCRIPT error: %s", async (dialect) => {
    const { call, sent } = rig([redisError("HTTP 400, NOSCRIPT No matching script."), "reply"], { dialect });
    expect(await runScript(call, registerScript, ["k"], [1])).toBe("reply");
    const text = (dialect === "upstash" ? upstashFlag : "") + registerScript.source;
    expect(sent).toEqual([
      ["EVALSHA", registerScript.sha[dialect], 1, "k", 1],
      ["EVAL", text, 1, "k", 1],
    ]);
    expect(call.cost).toEqual({ requests: 2, commands: 2 });
  });

  test("does not repeat the request after any other failure, because it may have been executed", async () => {
    const { call, sent } = rig([new EndpointError("e", "timeout", "no answer")]);
    await expect(runScript(call, registerScript, ["k"], [])).rejects.toThrow("no answer");
    expect(sent).toHaveLength(1);
  });
});

test("send counts what it sends, also when it fails", async () => {
  const { call } = rig([new EndpointError("e", "network", "reset")]);
  await expect(send(call, ["PING"])).rejects.toThrow("reset");
  expect(call.cost).toEqual({ requests: 1, commands: 1 });
});
