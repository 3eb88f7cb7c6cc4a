import { Buffer } from "node:buffer";
import { describe, expect, test } from "vitest";
import { ReplyError } from "../../../lock-server/src/engine/reply-error.ts";
import { keyOf, parseKey } from "../../../src/stored/parse.ts";
import { isOn, others, switches, without } from "../../src/page/browser/switches.ts";
import { duration, matching, summary, wrongs } from "../../src/page/browser/words.ts";
import { Clients } from "../../src/page/clients.ts";
import { isShown, labelOf } from "../../src/page/key.ts";
import { storedValue } from "../../src/page/read.ts";
import { commandsOf, outcomeOf, wordsOf } from "../../src/page/request.ts";
import { lockRow, recordRow, type SeenValue, Stored } from "../../src/page/stored.ts";

const token = (digit: string) => `t${digit.repeat(32)}`;

describe("keys", () => {
  test("that hold nothing are not shown", () => {
    const shown = (kind: string) => isShown(parseKey(keyOf("p", kind, "r"))!);
    const kinds = ["lock", "fair", "slot:0", "idem", "tries", "flight", "read-write", "once", "reentrant"];
    expect(kinds.filter(shown)).toEqual(kinds);
    expect(["fence", "void", "limit", "session"].filter(shown)).toEqual([]);
    expect(labelOf(parseKey(keyOf("p", "slot:3", "pool"))!)).toBe("pool slot 3");
  });
});

describe("requests", () => {
  const lock = keyOf("redlock", "lock", "a");
  const script = (...args: string[]) => ["EVALSHA", "0".repeat(40), "2", lock, "redlock:fence:{a}", ...args];
  const words = (...command: string[]) => wordsOf([command]);

  test("are named by what they do", () => {
    expect(words("SET", lock, token("1"), "NX", "PX", "100")).toMatchObject({
      operation: "acquire",
      key: { resource: "a" },
      tokens: [token("1")],
    });
    expect(words("SET", lock, "v", "IFEQ", "v", "PX", "100").operation).toBe("extend");
    expect(words("DELEX", lock, "IFEQ", "v").operation).toBe("release");
    expect(words(...script("claim", token("1"))).operation).toBe("acquire");
    expect(words(...script("keep", token("1"))).operation).toBe("extend");
    expect(words(...script("end", token("1"))).operation).toBe("release");
    expect(words(...script("no word of ours")).operation).toBe("EVALSHA");
    expect(words("SET", keyOf("p", "idem", "h"), "P1 t 1 -", "NX", "GET").operation).toBe("begin");
    expect(words("SET", keyOf("p", "flight", "h"), "C1 t 1 -", "IFEQ", "P1").operation).toBe("complete");
    expect(words("SET", "lock", "v", "NX").operation).toBe("SET");
    const tries = ["SET", keyOf("p", "tries", "h"), "A1 t 1", "NX", "GET"];
    expect(words(...tries).operation).toBe("count");
    expect(outcomeOf(words(...tries), tries, Buffer.from("A1 t 1"))).toBeUndefined();
    expect(wordsOf([["GET", "a"], script("acquire")])).toMatchObject({
      operation: "2 commands",
      commands: 2,
    });
  });

  test("are read from path and body, and what cannot be read has no words", () => {
    const body = (text: string) => Buffer.from(text);
    expect(commandsOf("/", body('["SET","k",1]'))).toEqual([["SET", "k", "1"]]);
    expect(commandsOf("/pipeline", body('[["GET","a"],["GET","b"]]'))).toHaveLength(2);
    expect(commandsOf("/set/a%20b/c", body(""))).toEqual([["set", "a b", "c"]]);
    expect(commandsOf("/", body("{"))).toEqual([]);
    expect(commandsOf("/get/%E0%A4%A", body(""))).toEqual([["get", "%E0%A4%A"]]);
    expect(wordsOf([])).toMatchObject({ operation: "", tokens: [] });
  });

  test("have outcomes", () => {
    const outcome = (reply: Parameters<typeof outcomeOf>[2], ...command: string[]) =>
      outcomeOf(words(...command), command, reply);
    const acquire = ["SET", lock, "v", "NX", "PX", "1"];
    expect(outcome(Buffer.from("OK"), ...acquire)).toBe("granted");
    expect(outcome(null, ...acquire)).toBe("held");
    expect(outcome(0, "DELEX", lock, "IFEQ", "v")).toBe("gone");
    expect(outcome([0, 12], ...script("acquire"))).toBe("held");
    expect(outcome([0, 12], ...script("extend"))).toBe("gone");
    expect(outcome([Buffer.from("v")], ...script("acquire"))).toBe("granted");
    const ended = (hits: string) => [Buffer.from("v"), 2, Buffer.from(hits)];
    expect(outcome(ended("tt"), ...script("end"))).toBe("granted");
    expect(outcome(ended("tf"), ...script("end"))).toBe("gone");
    expect(outcome([ended("f"), 1], ...script("end"))).toBe("gone");
    const run = ["EVALSHA", "0".repeat(40), "2", keyOf("p", "idem", "h"), lock, "end"];
    expect(outcome(ended("tf"), ...run)).toBe("granted");
    expect(outcome(ended("ft"), ...run)).toBe("gone");
    expect(outcome(new ReplyError("ERR no"), ...acquire)).toBe("error");
    expect(outcome(null, "GET", lock)).toBeUndefined();
    const begin = ["SET", keyOf("p", "idem", "h"), "P1 own", "NX", "GET"];
    expect(outcome(null, ...begin)).toBe("granted");
    expect(outcome(Buffer.from("P1 own"), ...begin)).toBe("granted");
    expect(outcome(Buffer.from("C1 other"), ...begin)).toBe("held");
  });
});

describe("clients", () => {
  const from = (connection: string, ...tokens: string[]) => ({ connection, agent: "node", tokens });
  const nobody = new Set<string>();

  test("are told apart by connections, which a random name joins", () => {
    const clients = new Clients();
    expect(
      clients.namesOf([from("1", token("a")), from("2", token("a")), from("3", token("b"))], 0, nobody),
    ).toEqual(["node A", "node A", "node B"]);
    // A new connection of A, beside one that is known, in one round.
    expect(clients.namesOf([from("4", token("c")), from("1", token("c"))], 100, nobody)).toEqual([
      "node A",
      "node A",
    ]);
    expect(clients.namesOf([from("4")], 200, nobody)).toEqual(["node A"]);
    expect(clients.nameOfToken(token("b"))).toBe("node B");
  });

  test("are the same after their idle connections have ended, unless they hold something", () => {
    const clients = new Clients();
    expect(clients.namesOf([from("1")], 0, nobody)).toEqual(["node A"]);
    expect(clients.namesOf([from("2")], 5_001, nobody)).toEqual(["node A"]);
    expect(clients.namesOf([from("3")], 11_000, new Set(["node A"]))).toEqual(["node B"]);
  });

  test("are at most eight; names are used again after a minute", () => {
    const clients = new Clients();
    // No more than a few appear within three seconds; those that are idle hold something.
    const all: string[] = [];
    for (let index = 0; index < 9; index++) {
      all.push(...clients.namesOf([from(`${index}`)], 1_000 * index, new Set(all)));
    }
    expect(all.slice(-2)).toEqual(["node H", "another client"]);
    const curl = { connection: "x", agent: "curl/8.1", tokens: [] };
    expect(clients.namesOf([curl], 68_000, nobody)).toEqual(["curl A"]);
  });

  test("that appear in a crowd are one: it has a connection for each request under way", () => {
    const clients = new Clients();
    const burst = (first: number, count: number) =>
      Array.from({ length: count }, (_, index) => from(`${first + index}`, token(`${index % 10}${first}`)));
    expect(clients.namesOf([from("a"), from("b")], 0, nobody)).toEqual(["node A", "node B"]);
    clients.namesOf([from("b")], 4_000, nobody);
    // Some arrive before the next look, the others after it.
    expect(clients.namesOf(burst(100, 5), 4_250, nobody)).toContain("node C");
    expect(new Set(clients.namesOf(burst(200, 25), 4_500, nobody))).toEqual(new Set(["node B"]));
    expect(clients.nameOf(from("100"))).toBe("node B");
    expect(clients.namesOf([from("a"), from("c")], 8_000, new Set(["node B"]))).toEqual(["node A", "node C"]);
  });
});

describe("what is stored", () => {
  const parts = parseKey(keyOf("p", "lock", "a"))!;
  const value = (holder: string, more: Partial<SeenValue> = {}): SeenValue => ({
    parts,
    holder,
    token: undefined,
    until: 1_000,
    ...more,
  });

  test("has a holder's hash, and no token", () => {
    const found = storedValue(parts, [token("1"), 500, "17"], 1_000);
    expect(found).toMatchObject({ until: 1_500, fence: 17, token: token("1") });
    expect(found?.holder).toMatch(/^[0-9a-f]{12}$/);
    // An owner's handles are one holder.
    const owned = (nonce: string) => storedValue(parts, [`${token(nonce)}me`, 1, null], 0)?.holder;
    expect(owned("1")).toBe(owned("2"));
    for (const [kind, text] of [
      ["slot:0", `${token("3")}me`],
      ["fair", `${token("4")}me`],
      ["once", `r12:${token("6")}me`],
    ] as const) {
      const held = parseKey(keyOf("p", kind, "a"))!;
      expect(storedValue(held, [text, 1, null], 0)?.holder, kind).toBe(owned("1"));
    }
    const noted = storedValue(parts, [`${token("1")} who\nand why`, 1, null], 0);
    expect(noted).toMatchObject({ holder: found?.holder, note: "who\nand why", token: token("1") });
    expect(lockRow([noted, noted, "free"], 2, () => "p1")).toMatchObject({
      held: true,
      note: "who\nand why",
    });
    expect(storedValue(parts, [new ReplyError("WRONGTYPE"), 5, null], 0)).toBeUndefined();
    expect(storedValue(parts, ["", -2, null], 0)).toBeUndefined();
    const record = parseKey(keyOf("p", "flight", "h"))!;
    expect(labelOf(record)).toBe("flight h…");
    expect(storedValue(record, ["C1 t 12 - {}", 5, null], 0)?.record).toEqual({
      state: "complete",
      since: 12,
    });
    expect(storedValue(record, ["junk", 5, null], 0)?.record).toEqual({ state: "corrupt" });
  });

  test("is a change if it differs, and not if only the moment of reading does", () => {
    const stored = new Stored();
    expect(stored.set("k", value("x"), 0)).toBe(true);
    expect(stored.set("k", value("x", { until: 1_015 }), 0)).toBe(false);
    expect(stored.get("k")?.until).toBe(1_000);
    expect(stored.set("k", value("x", { until: 1_500 }), 0)).toBe(true);
    expect(stored.set("k", undefined, 0)).toBe(true);
    expect(stored.set("k", undefined, 0)).toBe(false);
  });

  test("keeps its place when it is read again: the newest are the last", () => {
    const stored = new Stored();
    for (const key of ["a", "b"]) stored.set(key, { ...value(key), parts: { ...parts, key } }, 0);
    stored.set("a", { ...value("a", { until: 2_000 }), parts: { ...parts, key: "a" } }, 1);
    expect(stored.values(2).map((each) => each.parts.key)).toEqual(["a", "b"]);
    stored.set("a", { ...value("other"), parts: { ...parts, key: "a" } }, 3);
    expect(stored.values(4).map((each) => each.parts.key)).toEqual(["b", "a"]);
  });

  test("is a key that may be dead where only a count of its runs is left", () => {
    const tries = parseKey(keyOf("p", "tries", "h"))!;
    const count = storedValue(tries, ["A1 t 3", 500, null], 0)!;
    const nothing = ["free", "free", "free"] as const;
    expect(recordRow(nothing, [count, count, "free"])).toMatchObject({
      state: "unfinished",
      attempts: 3,
      shares: ["same", "same", "free"],
    });
    const record = storedValue(parseKey(keyOf("p", "idem", "h"))!, ["P1 t 12 -", 500, null], 0)!;
    expect(recordRow([record, record, record], [count, "free", "free"])).toMatchObject({
      state: "pending",
      attempts: 3,
      since: 12,
    });
    expect(recordRow(nothing, nothing)).toBeUndefined();
  });

  test("is bounded, and forgotten when it has expired", () => {
    const stored = new Stored();
    for (let index = 0; index < 1_200; index++) stored.set(`${index}`, value("x"), 0);
    expect(stored.values(0)).toHaveLength(1_000);
    expect(stored.get("0")).toBeUndefined();
    expect(stored.values(1_000)).toEqual([]);
  });

  test("is held if a quorum has the same holder", () => {
    const row = (...across: Parameters<typeof lockRow>[0]) => lockRow(across, 2, () => "node A");
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
});

describe("the page", () => {
  test("says whether a quorum can answer", () => {
    const state = (...statuses: ("up" | "stopped")[]) =>
      ({
        engine: "redis",
        quorum: 2,
        endpoints: statuses.map((status) => ({ status, faults: [] })),
        locks: [],
      }) as never;
    expect(summary(state("up", "up", "stopped"))).toEqual({
      text: "2 of 3 endpoints up, on Redis · a quorum is 2 · nothing held",
      bad: false,
    });
    expect(summary(state("up", "stopped", "stopped")).bad).toBe(true);
    expect([0, 812, 8_240, 185_000, 1e15].map(duration)).toEqual([
      "0 ms",
      "812 ms",
      "8.2 s",
      "3 min 5 s",
      "no expiry",
    ]);
  });

  test("says what is wrong: endpoints, faults, and keys that do not run", () => {
    const up = { status: "up", faults: [] } as const;
    const row = { until: 0, shares: [] };
    const found = wrongs({
      endpoints: [
        { ...up, name: "e1" },
        { ...up, name: "e2", faults: [{ fault: "delay", ms: 400 }] },
        { ...up, name: "e3", faults: [{ fault: "down" }], status: "stopped" },
        { ...up, name: "e4", status: "silent" },
      ],
      records: [
        { ...row, key: "1", state: "corrupt" },
        { ...row, key: "2", state: "unfinished", attempts: 1 },
        { ...row, key: "3", state: "pending" },
        { ...row, key: "4", state: "complete" },
      ],
    } as never);
    expect(found.map(({ name, text }) => `${name} ${text}`)).toEqual([
      "e2 has faults switched on: delay ms 400",
      "e3 is stopped",
      "e4 is up, but its Redis does not answer",
      "key 1 has a value that is not a record: its runs fail",
      "key 2 may be dead: 1 run began and neither completed nor failed, and none is under way",
    ]);
  });

  test("finds what has all words of a search", () => {
    expect(["", "ORDER", "node order", "r:7 a"].map((search) => matching("order:7 node A", search))).toEqual([
      true,
      true,
      true,
      true,
    ]);
    expect(matching("order:7 node A", "order B")).toBe(false);
  });

  test("knows which rules its switches have set", () => {
    const down = switches.find(({ label }) => label === "down")!;
    expect(isOn(down, [{ fault: "down" }])).toBe(true);
    // As the command line sets it.
    expect(isOn(down, [{ fault: "down", probability: 1 }])).toBe(true);
    expect(
      isOn(down, [
        { fault: "down", probability: 0.5 },
        { fault: "down", times: 1 },
      ]),
    ).toBe(false);
    expect(without(down, [{ fault: "delay", ms: 7 }, { fault: "down" }])).toEqual([
      { fault: "delay", ms: 7 },
    ]);
    expect(others([{ fault: "delay", ms: 7 }, { fault: "down" }])).toEqual([{ fault: "delay", ms: 7 }]);
  });
});
