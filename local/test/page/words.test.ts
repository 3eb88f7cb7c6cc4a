import { Buffer } from "node:buffer";
import { describe, expect, test } from "vitest";
import { ReplyError } from "../../../lock-server/src/engine/reply-error.ts";
import { keyOf, parseKey } from "../../../src/inspect/stored-key.ts";
import { ago, clock, left, matching, short, summary } from "../../src/page/browser/words.ts";
import { isShown, labelOf } from "../../src/page/key.ts";
import { storedValue } from "../../src/page/read.ts";
import { merged, resultOf, rowsOf, wordsOf } from "../../src/page/request.ts";
import { lockRow, recordRow } from "../../src/page/stored.ts";
import type { Exchange, Executed } from "../../src/rest/observe.ts";
import type { WireReply } from "../../src/rest/redis/resp.ts";

const token = (digit: string) => `t${digit.repeat(32)}`;
const bytes = (text: string) => Buffer.from(text);
const lock = keyOf("redlock", "lock", "a");
const run = keyOf("redlock", "idem", "h");
const script = (key: string, ...args: string[]) => [
  "EVALSHA",
  "0".repeat(40),
  "2",
  key,
  "redlock:void:{a}",
  ...args,
];
const pending = `P1 ${token("1")} 1 -`;
const complete = `C1 ${token("1")} 2 - {}`;

describe("requests", () => {
  const acquire = ["SET", lock, token("1"), "NX", "PX", "100"];
  const begin = ["SET", run, pending, "NX", "GET"];
  const [own, other] = [bytes(token("1")), bytes(token("2"))];
  const mailbox = (...args: string[]) => {
    const keys = ["mailbox", "mailbox-order", "mailbox-values", "void", "mailbox-done"];
    return ["EVALSHA", "0".repeat(40), "5", ...keys.map((kind) => keyOf("redlock", kind, "a")), ...args];
  };
  const post = ["post", token("1"), "9", "9", "9", "5", "0", "100", "0", "ia", token("3"), "v1"];
  const step = (closes: string) => ["step", token("1"), "0", "9", "9", "1", closes, "0", "0", "0", "0"];
  test.each<[string, string, WireReply, readonly string[]]>([
    ["acquire", "acquired", bytes("OK"), acquire],
    ["acquire", "held by another", null, acquire],
    ["extend", "gone", null, ["SET", lock, "v", "IFEQ", "v", "PX", "100"]],
    ["release", "released", 1, ["DELEX", lock, "IFEQ", "v"]],
    ["release", "gone", 0, ["DELEX", lock, "IFEQ", "v"]],
    ["acquire", "acquired", [bytes(token("1"))], script(lock, "claim", token("1"))],
    ["acquire", "held by another", [0, 1, 12, bytes(token("2"))], script(lock, "prove", token("1"))],
    ["extend", "extended", [bytes(token("1"))], script(lock, "keep", token("1"))],
    ["release", "released", [bytes(token("1")), bytes("t")], script(lock, "end", token("1"))],
    ["release", "gone", [bytes(token("1")), bytes("tf")], script(lock, "end", token("1"))],
    ["begin", "begun", null, begin],
    ["begin", "begun", bytes(pending), begin],
    ["begin", "replayed", bytes(complete), begin],
    ["begin", "waiting", [0, 1, -2, bytes(`P1 ${token("2")} 1 -`)], script(run, "claim", "", pending)],
    ["begin", "replayed", [0, 1, -2, bytes(complete)], script(run, "claim", "", `P1 ${token("2")} 1 -`)],
    ["complete", "executed", [bytes(token("1"))], script(run, "keep", pending, complete)],
    ["complete", "executed", [bytes(token("1")), bytes("tf")], script(run, "end", pending, complete)],
    ["complete", "taken over", [bytes(token("1")), bytes("ft")], script(run, "end", pending, complete)],
    ["extend", "extended", [bytes(token("1"))], script(run, "keep", pending, pending)],
    ["end", "failed", [bytes(token("1")), bytes("t")], script(run, "end", pending, "")],
    ["count", "ok", bytes("A1 t 1"), ["SET", keyOf("p", "tries", "h"), "A1 t 1", "NX", "GET"]],
    // The slots that others have, t or f, are no verdict.
    ["semaphore slot 0", "ok", [bytes("v"), 1, bytes("ft"), 2], script(keyOf("p", "slot:0", "a"), "v", "2")],
    ["fair lock", "refused", [0, 1], script(keyOf("p", "fair", "a"), token("1"), "17")],
    ["post", "turn taken", [own, bytes("stored"), own, bytes("0"), bytes("5"), []], mailbox(...post)],
    ["post", "queued", [own, bytes("stored"), other, bytes("0"), bytes("5"), []], mailbox(...post)],
    ["post", "duplicate", [own, bytes("handled")], mailbox(...post)],
    ["post", "full", [own, bytes("full"), bytes("ib")], mailbox(...post)],
    [
      "drain",
      "turn taken",
      [own, bytes("stored"), own, bytes("0"), bytes("5"), []],
      mailbox(...post.slice(0, 9)),
    ],
    [
      "drain",
      "held by another",
      [own, bytes("stored"), other, bytes("0"), bytes("5"), []],
      mailbox(...post.slice(0, 9)),
    ],
    ["step", "ok", [own, bytes("open"), [], []], mailbox(...step("0"))],
    ["close", "turn ended", [own, bytes("closed")], mailbox(...step("1"))],
    ["close", "more messages", [own, bytes("open"), [], []], mailbox(...step("1"))],
    ["close", "gone", [own, bytes("lost")], mailbox(...step("1"))],
    ["extend", "extended", [own, bytes("open")], mailbox("keep", token("1"), "10")],
    ["extend", "gone", [own, bytes("lost")], mailbox("keep", token("1"), "10")],
    ["release", "released", [own, bytes("open")], mailbox("end", token("1"), "0")],
    ["look", "ok", [own, bytes("seen"), bytes(""), bytes("2")], mailbox("look", token("1"), "0")],
    ["SET", "ok", bytes("OK"), ["SET", "plain", "v", "NX"]],
    ["acquire", "error ERR", new ReplyError("ERR value secret-token"), acquire],
    ["acquire", "script not cached", new ReplyError("NOSCRIPT No matching script"), script(lock, "claim")],
  ])("are named in the words of users: %s, %s", (operation, result, reply, command) => {
    expect(wordsOf(command).operation).toBe(operation);
    expect(resultOf(wordsOf(command), command, reply)).toBe(result);
  });

  const once = (command = acquire): Executed => ({ command, reply: bytes("OK"), billed: 1 });
  const plain = ["GET", "b"];
  test.each<[commands: string[][], parts: Partial<Exchange>, rows: string[]]>([
    [[acquire], { executed: [once()], status: 200 }, ["acquire a acquired"]],
    [[acquire], { executed: [once()] }, ["acquire a acquired, reply lost (failed)"]],
    [[acquire], { executed: [once(), once()], status: 200 }, ["acquire a acquired, executed twice"]],
    [[acquire], {}, ["acquire a request lost (failed)"]],
    [
      [acquire, plain],
      { executed: [once(), once(plain)], status: 200, path: "/pipeline" },
      ["acquire a acquired", "GET b ok"],
    ],
    [[plain], { status: 503 }, ["GET b HTTP 503 (failed)"]],
    [[], { status: 400 }, ["/  HTTP 400 (failed)"]],
  ])("have a row for each command, and say what faults have done: %j, %j", (commands, parts, rows) => {
    const peer = { address: "127.0.0.1", port: 1, agent: "node" };
    const nothing = { peer, at: 1, ms: 5, path: "/", executed: [], status: undefined };
    const shown = rowsOf("e1", { ...nothing, commands, ...parts });
    expect(
      shown.map(
        ({ operation, resource, result, failed }) =>
          `${operation} ${resource} ${result}${failed ? " (failed)" : ""}`,
      ),
    ).toEqual(rows);
  });
});

test("what a client does at several endpoints with one result is one row", () => {
  const row = (at: number, endpoint: string, client = "node 1", result = "acquired") => {
    const same = { operation: "acquire", resource: "a", failed: false };
    return { ...same, at, client, endpoints: [endpoint], result, ms: at, billed: 2 };
  };
  const rows = [
    row(9, "e3", "node 1", "acquired, reply lost"),
    row(9, "e2"),
    row(8, "e2", "node 2"),
    row(7, "e1"),
    // The attempt before.
    row(5, "e2"),
    row(4, "e1"),
    row(-2_000, "e4"),
  ];
  const shown = merged(rows).map(
    ({ client, endpoints, ms, billed }) => `${client} ${endpoints} ${ms} ms, ${billed}`,
  );
  expect(shown).toEqual([
    "node 1 e3 9 ms, 2",
    "node 1 e1,e2 9 ms, 4",
    "node 2 e2 8 ms, 2",
    "node 1 e1,e2 5 ms, 4",
    "node 1 e4 -2000 ms, 2",
  ]);
});

describe("what is stored", () => {
  const parts = parseKey(lock)!;
  const value = (holder: string, more: object = {}) => ({
    parts,
    holder,
    token: undefined,
    until: 1_000,
    ...more,
  });

  test("is shown if it is held, or a run's", () => {
    const kinds = [
      "lock",
      "fair",
      "slot:0",
      "idem",
      "tries",
      "flight",
      "read-write",
      "once",
      "reentrant",
      "mailbox",
    ];
    const all = [...kinds, "fence", "void", "limit", "session"];
    expect(all.filter((kind) => isShown(parseKey(keyOf("p", kind, "r"))!))).toEqual(kinds);
    expect(labelOf(parseKey(keyOf("p", "slot:3", "pool"))!)).toBe("pool slot 3");
  });

  test("has a holder's hash, and no token", () => {
    const found = storedValue(parts, [token("1"), 500, "17"], 1_000);
    expect(found).toMatchObject({ until: 1_500, fence: 17, token: token("1") });
    expect(found?.holder).toMatch(/^[0-9a-f]{12}$/);
    // An owner's handles are one holder.
    const owned = (kind: string, text: string) =>
      storedValue(parseKey(keyOf("p", kind, "a"))!, [text, 1, null], 0)?.holder;
    const own = owned("lock", `${token("1")}me`);
    expect([owned("slot:0", `${token("3")}me`), owned("once", `r12:${token("6")}me`)]).toEqual([own, own]);
    // A turn's holder is one, step by step.
    const turns = [1, 2].map((number) => owned("mailbox", `${token("1")} ${number}`));
    expect(turns).toEqual([found?.holder, found?.holder]);
    const noted = storedValue(parts, [`${token("1")} who\nand why`, 1, null], 0);
    expect(noted).toMatchObject({ holder: found?.holder, note: "who\nand why" });
    expect(storedValue(parts, [new ReplyError("WRONGTYPE"), 5, null], 0)).toBeUndefined();
    expect(storedValue(parts, ["", -2, null], 0)).toBeUndefined();
  });

  test("is held if a quorum has the same holder", () => {
    const row = (...across: Parameters<typeof lockRow>[0]) => lockRow(across, 2, () => "node 1");
    expect(row("free", undefined, "free")).toBeUndefined();
    expect(row(value("x", { until: 5 }), value("x", { until: 9, fence: 3 }), "free")).toMatchObject({
      held: true,
      holder: "x",
      until: 5,
      fence: 3,
      shares: ["same", "same", "free"],
    });
    expect(row(value("x"), value("y"), undefined)).toMatchObject({
      held: false,
      shares: ["same", "other", "unknown"],
    });
  });

  test("is a key that may be dead if only a count of its runs is left", () => {
    const of = (kind: string, text: string) =>
      storedValue(parseKey(keyOf("p", kind, "h"))!, [text, 500, null], 0)!;
    const nothing = ["free", "free", "free"] as const;
    const count = of("tries", "A1 t 3");
    expect(recordRow(nothing, [count, count, "free"])).toMatchObject({
      key: "key h",
      state: "unfinished",
      attempts: 3,
      shares: ["same", "same", "free"],
    });
    const record = of("flight", "P1 t 12 -");
    expect(recordRow([record, record, record], [count, "free", "free"])).toMatchObject({
      key: "flight h",
      state: "pending",
      attempts: 3,
      since: 12,
    });
    expect(of("idem", "junk").record).toEqual({ state: "corrupt" });
    expect(recordRow(nothing, nothing)).toBeUndefined();
  });
});

describe("the page", () => {
  test("says whether a quorum can answer, and how long things take", () => {
    const state = (...statuses: ("up" | "stopped")[]) =>
      ({
        engine: "redis",
        quorum: 2,
        endpoints: statuses.map((status) => ({ status, faults: [] })),
        locks: [],
        records: [{ state: "pending" }, { state: "unfinished" }, { state: "corrupt" }].slice(
          0,
          statuses.length - 2,
        ),
      }) as never;
    expect(summary(state("up", "up", "stopped"))).toEqual({
      text: "2 of 3 endpoints up, on Redis · a quorum is 2 · nothing held",
      bad: false,
    });
    expect(summary(state("up", "stopped", "stopped")).bad).toBe(true);
    expect(summary(state("up", "up", "up", "up", "up"))).toMatchObject({
      text: expect.stringMatching(/nothing held · 2 keys may be dead or corrupt$/),
      bad: true,
    });
    expect(clock(1_700_000_000_950)).toMatch(/^\d\d:\d\d:20\.9$/);
    expect([-5, 8_240, 1e15].map(left)).toEqual(["0 ms", "8.2 s", "no expiry"]);
    expect([0, 8_240, 185_000, 7_300_000].map(ago)).toEqual(["now", "8 s ago", "3 min ago", "2 h ago"]);
    expect(short(`begin${"x".repeat(200)}end`)).toMatch(/^beginx{40} … x{27}end$/);
  });

  test("finds what has all words of a search", () => {
    const found = ["", "ORDER", "node order", "r:7 a", "order B"].map((search) =>
      matching("order:7 node A", search),
    );
    expect(found).toEqual([true, true, true, true, false]);
  });
});
