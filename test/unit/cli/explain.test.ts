import { describe, expect, test } from "vitest";
import { deadLines, deadReport } from "../../../src/cli/explain-dead.ts";
import { type KeyReport, keyLines, keyReport } from "../../../src/cli/explain-key.ts";
import { lockLines, lockReport } from "../../../src/cli/explain-lock.ts";
import { changeBetween, type Look, lineOf } from "../../../src/cli/watch.ts";
import type { KeyInspection, KeyVote } from "../../../src/idempotency/index.ts";
import { EndpointError, type Inspection, QuorumError } from "../../../src/index.ts";

const silent = new EndpointError("e3", "timeout", "no answer\u001b[2J in time");
const cost = { requests: 3, ms: 12 };

describe("locks", () => {
  const held: Inspection = {
    held: true,
    holder: "aaaaaaaaaaaa",
    remaining: 8_200,
    fence: 1_000_000,
    votes: [
      { endpoint: "e1", outcome: "held", holder: "aaaaaaaaaaaa", remaining: 8_200, fence: 1_000_000 },
      { endpoint: "e2", outcome: "held", holder: "aaaaaaaaaaaa", remaining: 8_300, fence: 999_999 },
      { endpoint: "e3", outcome: "error", cause: silent },
    ],
  };

  test("says why a lock is held, and by whom", () => {
    const report = lockReport("invoice:42", held, 1_004_000);
    expect(report).toMatchObject({ state: "held", holder: "aaaaaaaaaaaa", remaining: 8_200, quorum: 2 });
    expect(report.fenceAge).toBe(4_000);
    expect(lockLines(report, cost)).toEqual([
      "invoice:42 is held",
      "  why        2 of 3 endpoints have the same holder, a quorum is 2; 1 of 3 gave no usable answer: e3 (no",
      "             answer\\u{1b}[2J in time)",
      "  holder     aaaaaaaaaaaa (SHA-256 of its lock.token, first 12 digits)",
      "  remaining  8.2 s, unless the holder extends it",
      "  fence      1000000, drawn 4.0 s ago",
      "  votes      e1  held   8.2 s  aaaaaaaaaaaa  fence 1000000",
      "             e2  held   8.3 s  aaaaaaaaaaaa  fence 999999",
      "             e3  error  no answer\\u{1b}[2J in time",
      "  cost       3 requests, 12 ms",
    ]);
  });

  test("shows the last fence of a free lock, and no time that remains", () => {
    const votes = [{ endpoint: "e1", outcome: "free", remaining: 0, fence: 7 }] as const;
    const report = lockReport("r", { held: false, remaining: 0, fence: 7, votes }, 7);
    expect(lockLines(report, cost)).toEqual([
      "r is free",
      "  why         no endpoint that answered has a holder, a quorum is 1",
      "  last fence  7, drawn 0 ms ago",
      "  votes       e1  free  fence 7",
      "  cost        3 requests, 12 ms",
    ]);
  });

  test("counts the holder's endpoints, not another's, and shows no fence where there is none", () => {
    const votes = ["b", "a", "a"].map((holder, index) => {
      return { endpoint: `e${index + 1}`, outcome: "held" as const, holder, remaining: 5 };
    });
    const report = lockReport("r", { held: true, holder: "a", remaining: 5, fence: undefined, votes }, 0);
    expect(lockLines(report, cost)).toEqual([
      "r is held",
      "  why        2 of 3 endpoints have the same holder, a quorum is 2",
      "  holder     a (SHA-256 of its lock.token, first 12 digits)",
      "  remaining  5 ms, unless the holder extends it",
      "  votes      e1  held  5 ms  b",
      "             e2  held  5 ms  a",
      "             e3  held  5 ms  a",
      "  cost       3 requests, 12 ms",
    ]);
  });

  test("says that several holders have a part each", () => {
    const votes = ["x", "y", "z", "z"].map((holder) => ({
      endpoint: holder,
      outcome: "held" as const,
      holder,
      remaining: 5,
    }));
    const report = lockReport("r", { held: false, remaining: 0, fence: undefined, votes }, 0);
    expect(report.state).toBe("free");
    expect(report.why).toContain("nobody has a quorum, which is 3 of 4: x has 1, y has 1, z has 2. What");
  });

  test("says that it is undecided, and whose answers are missing", () => {
    const error = new QuorumError(
      "inspect",
      ["r"],
      [
        { endpoint: "e1", outcome: "held" },
        { endpoint: "e2", outcome: "granted" },
        { endpoint: "e3", outcome: "error", cause: silent },
      ],
    );
    const report = lockReport("r", error, 0);
    expect(report).toMatchObject({
      state: "undecided",
      votes: [{ state: "held" }, { state: "free" }, { state: "error" }],
    });
    expect(report.why).toMatch(/too few .* a quorum is 2: 1 held, 1 free; 1 of 3 .* e3 \(no answer/);
  });

  test("watch prints changes only, and extensions", () => {
    const look = (found: Inspection, at: number): Look => ({
      finding: { kind: "lock", report: lockReport("r", found, at), cost },
      at,
    });
    const first = look(held, 0);
    expect(changeBetween(undefined, first)).toBe("first");
    expect(changeBetween(first, look({ ...held, remaining: 7_200 }, 1_000))).toBeUndefined();
    expect(changeBetween(first, look({ ...held, remaining: 7_450 }, 1_000))).toBeUndefined();
    expect(changeBetween(first, look({ ...held, remaining: 7_451 }, 1_000))).toBe("extended");
    expect(changeBetween(first, look({ ...held, holder: "b" }, 1_000))).toBe("changed");
    const answered = { endpoint: "e3", outcome: "free" as const, remaining: 0 };
    expect(changeBetween(first, look({ ...held, votes: [...held.votes.slice(0, 2), answered] }, 1_000))).toBe(
      "changed",
    );
    expect(lineOf(first, "first")).toMatch(
      /^1970-01-01T00:00:00.000Z {2}r is held; 8.2 s left; holder aaaaaaaaaaaa; fence 1000000; 2 of 3/,
    );
    expect(lineOf(first, "first")).not.toContain("\u001b");
    expect(lineOf(first, "extended")).toMatch(/r is held; extended; 8.2 s left/);
  });
});

describe("keys", () => {
  const vote = { endpoint: "e1", state: "complete", age: 5_000, remaining: 60_000, attempts: 2 } as const;
  const complete: KeyInspection = {
    state: "complete",
    age: 5_000,
    remaining: 60_000,
    attempts: 2,
    votes: [vote],
  };

  test("says what the next call gets", () => {
    expect(keyLines(keyReport("k\u0007", complete), cost)).toEqual([
      "k\\u{7} is complete",
      "  why        1 of 1 endpoint has the record of a complete run, a quorum is 1: duplicates get its result",
      "  age        completed 5.0 s ago",
      "  remaining  1 min 0 s, then the record expires",
      "  attempts   2 runs began, the last of them completed",
      "  votes      e1  complete  5.0 s old, 1 min 0 s left, 2 attempts",
      "  cost       3 requests, 12 ms",
    ]);
  });

  const votesOf = (...states: KeyVote["state"][]) =>
    states.map((state, index): KeyVote => ({ endpoint: `e${index + 1}`, state }));

  test.each<[Partial<KeyInspection>, string]>([
    [
      { unstored: "too-large" },
      "1 of 1 endpoint has the record of a complete run, a quorum is 1: its result is not stored (too-large), so duplicates get ResultUnavailableError",
    ],
    [
      { state: "pending", votes: votesOf("pending", "none", "pending") },
      "2 of 3 endpoints have the record of a run that began and did not end, a quorum is 2: it is under way, or its process has died",
    ],
    [
      { state: "corrupt", votes: votesOf("complete", "corrupt") },
      "1 of 2 endpoints has a value that is not a record: calls get RecordCorruptError until it is forgotten",
    ],
    [
      { state: "none", votes: votesOf("none") },
      "no endpoint that answered has a record: the next call runs the handler",
    ],
    [
      { state: "none", votes: [{ ...vote, state: "none" }] },
      "no endpoint that answered has a record: the next call runs the handler, unless the key is dead",
    ],
    [
      { state: "undecided", votes: votesOf("pending", "complete", "none") },
      "of 3 endpoints, 1 have a pending and 1 a complete record, a quorum is 2: the next call decides",
    ],
  ])("explains %j", (change, why) => {
    expect(keyReport("k", { ...complete, ...change }).why).toBe(why);
  });

  test.each<[Partial<KeyInspection>, RegExp]>([
    [{}, /: callers share its value until its ttl has ended$/],
    [{ unstored: "too-large" }, /\(too-large\), so callers of other processes compute$/],
    [{ state: "none", votes: votesOf("none") }, /: the next call computes$/],
  ])("explains %j of a single flight", (change, why) => {
    expect(keyReport("k", { ...complete, ...change }, "flight").why).toMatch(why);
  });

  test("shows a run that is under way, and an endpoint that does not answer", () => {
    const votes: KeyVote[] = [
      { endpoint: "e1", state: "pending", age: 900, remaining: 100, attempts: 1 },
      { endpoint: "e2", state: "pending" },
      { endpoint: "e3", state: "error", cause: silent },
    ];
    const found: KeyInspection = { state: "pending", age: 900, remaining: 100, attempts: 1, votes };
    expect(keyLines(keyReport("k", { ...found, fingerprint: "ab12" }), cost).slice(3)).toEqual([
      "  age          began 900 ms ago",
      "  remaining    100 ms, then its lease ends, unless it is renewed",
      "  attempts     1 run began and neither completed nor failed",
      "  fingerprint  ab12",
      "  votes        e1  pending  900 ms old, 100 ms left, 1 attempt",
      "               e2  pending",
      "               e3  error    no answer\\u{1b}[2J in time",
      "  cost         3 requests, 12 ms",
    ]);
  });

  test("watch sees each change", () => {
    const look = (found: Partial<KeyInspection>): Look => ({
      finding: { kind: "key", report: keyReport("k", { ...complete, ...found }), cost },
      at: 0,
    });
    const first = look({});
    expect(changeBetween(first, look({ age: 9_000 }))).toBeUndefined();
    for (const found of [
      { state: "pending" },
      { attempts: 3 },
      { fingerprint: "ab" },
      { votes: [{ ...vote, state: "none" }] },
      { votes: [{ ...vote, attempts: 3 }] },
    ] satisfies Partial<KeyInspection>[]) {
      expect(changeBetween(first, look(found)), JSON.stringify(found)).toBe("changed");
    }
    expect(lineOf(first, "changed")).toMatch(/Z {2}k is complete; 1 min 0 s left; attempts 2; 1 of 1/);
  });

  test("says that too few endpoints answered", () => {
    const error = new QuorumError(
      "inspect",
      ["k"],
      [
        { endpoint: "e1", outcome: "granted" },
        { endpoint: "e3", outcome: "error", cause: silent },
      ],
    );
    const report = keyReport("k", error);
    expect(report).toMatchObject({ state: "undecided", votes: [{ state: "answered" }, { state: "error" }] });
    expect(report.why).toMatch(/^too few endpoints answered, a quorum is 2; 1 of 2 .* e3 \(/);
    expect(deadReport(report, 3).state).toBe("unknown");
  });
});

describe("dead keys", () => {
  const key = (change: Partial<KeyReport>): KeyReport => ({
    key: "k",
    state: "none",
    why: "",
    remaining: 0,
    attempts: 3,
    quorum: 1,
    votes: [{ endpoint: "e1", state: "none", attempts: 3 }],
    ...change,
  });

  test.each<[string, Partial<KeyReport>, number | undefined]>([
    ["dead", {}, 3],
    ["dead", {}, 2],
    ["alive", {}, 4],
    ["unknown", {}, undefined],
    ["alive", { attempts: 0 }, undefined],
    ["alive", { state: "complete" }, 3],
    ["last-attempt", { state: "pending", age: 100, remaining: 50 }, 3],
    ["alive", { state: "pending" }, 4],
    ["unknown", { state: "undecided" }, 3],
  ])("is %s: %j, maxAttempts %s", (state, change, maxAttempts) => {
    expect(deadReport(key(change), maxAttempts).state).toBe(state);
  });

  test("says what to do with a dead key, and nothing with another", () => {
    const dead = deadLines(deadReport(key({}), 3), "npx redlock-edge forget k");
    expect(dead[0]).toBe("k is dead");
    expect(dead.join("\n")).toContain("3 runs began and neither completed nor failed, and maxAttempts is 3");
    expect(dead.join("\n")).toMatch(/not known when it began.*[\s\S]*npx redlock-edge forget k/);
    expect(deadLines(deadReport(key({}), 9), "npx").join("\n")).not.toContain("what to do");
    const last = deadLines(deadReport(key({ state: "pending", age: 100, remaining: 50 }), 3), "npx");
    expect(last.join("\n")).toMatch(/began 100 ms ago; its lease ends in 50 ms[\s\S]*Wait until/);
  });
});
