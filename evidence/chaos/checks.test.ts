import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { checkHistories, disorderedFences, lostUpdates, overlaps, summarizeEvents } from "./checks.ts";
import { type Hold, holdsOf } from "./holds.ts";
import { type Ledger, openLedger } from "./ledger.ts";
import { accounts, type ClientRecord } from "./records.ts";

let names = 0;

/** A hold of "r" that was granted at `granted` and valid until `until`. */
function hold(granted: number, until: number, more: Partial<Hold> = {}): Hold {
  names += 1;
  const id = `hold-${names}`;
  const invoked = granted - 5;
  return {
    id,
    resource: "r",
    ttl: 100,
    invoked,
    granted,
    until,
    renewed: granted,
    excess: 0,
    looks: [],
    ran: [],
    accesses: [],
    ...more,
  };
}

const loss = { from: 20, to: 30 };

describe("overlaps", () => {
  test("finds a hold within another's validity, also with a short one in between", () => {
    const [long, short, late] = [hold(0, 100), hold(10, 12, { resource: "other" }), hold(90, 120)];
    expect(overlaps([late, short, long], [])).toEqual({ unexplained: [[long, late]], explained: [] });
    const inside = hold(10, 20);
    expect(overlaps([long, inside, late], []).unexplained).toEqual([
      [long, inside],
      [long, late],
    ]);
  });

  test("separates what a loss of memory explains", () => {
    const [first, second] = [hold(0, 100), hold(50, 90)];
    expect(overlaps([first, second], [loss])).toEqual({ unexplained: [], explained: [[first, second]] });
    expect(overlaps([first, second], [{ from: 60, to: 70 }]).unexplained).toHaveLength(1);
  });

  test("excepts a hold that was released, or that came too late", () => {
    expect(overlaps([hold(0, 100, { releasing: 40 }), hold(50, 90)], []).unexplained).toEqual([]);
    expect(overlaps([hold(0, 100), hold(50, 49)], []).unexplained).toEqual([]);
  });
});

describe("disorderedFences", () => {
  test("finds equal and smaller ones", () => {
    const [first, same, smaller] = [
      hold(0, 10, { fence: 7 }),
      hold(20, 30, { fence: 7 }),
      hold(40, 50, { fence: 6 }),
    ];
    expect(disorderedFences([first, same], []).unexplained).not.toEqual([]);
    expect(disorderedFences([smaller, first], []).unexplained).not.toEqual([]);
    expect(disorderedFences([smaller, first], [loss]).explained).not.toEqual([]);
    expect(disorderedFences([first, hold(20, 30, { fence: 8 })], []).unexplained).toEqual([]);
  });

  test("orders holds with validity left by their grant, not by their call", () => {
    const first = hold(0, 10, { fence: 7 });
    const waited = hold(20, 30, { fence: 6, invoked: -10 });
    expect(disorderedFences([first, waited], []).unexplained).toEqual([[first, waited]]);
    const useless = hold(20, 19, { fence: 6, invoked: -10 });
    expect(disorderedFences([first, useless], []).unexplained).toEqual([]);
  });
});

describe("summarizeEvents", () => {
  const executed = (at: number) => [{ at, how: "executed" }];
  const replayed = (value: string) => ({ at: 60, status: "replayed" as const, value });
  const stored = hold(10, 40, { ran: executed(20) });
  const summary = (holds: Hold[], effects = [stored.id], last: string | null = stored.id) =>
    summarizeEvents(holds, new Map([["r", effects]]), new Map([["r", last]]), []);

  test("accepts one result and its replays", () => {
    const answer = hold(0, 0, { invoked: 50, answered: replayed(stored.id) });
    const { granted: _, ...asked } = answer;
    const found = summary([stored, asked]);
    expect(found.stored.unexplained).toEqual([]);
    expect(found.answers.unexplained).toEqual([]);
    expect(found).toMatchObject({
      forgotten: [],
      withoutEffect: [],
      runs: 1,
      replayed: 1,
      effects: 1,
      repeated: 0,
    });
  });

  test("finds a second result, a wrong answer, a late run, a forgotten result and a missing effect", () => {
    const second = hold(30, 40, { ran: executed(35) });
    expect(summary([stored, second]).stored.unexplained).toEqual([[stored, second]]);
    const wrong = hold(0, 0, { invoked: 50, answered: replayed("another") });
    expect(summary([stored, wrong]).answers.unexplained).toEqual([[stored, wrong]]);
    const late = hold(50, 60, { ran: [{ at: 55, how: "failed" }] });
    expect(summary([stored, late])).toMatchObject({ otherwise: { failed: 1 } });
    expect(summary([stored, late]).answers.unexplained).toEqual([[stored, late]]);
    expect(summary([stored], [stored.id], null).forgotten).toEqual([stored]);
    expect(summary([stored], []).withoutEffect).toEqual([stored]);
    expect(summary([stored], [stored.id, stored.id])).toMatchObject({ repeated: 1, withoutEffect: [stored] });
  });
});

describe("checkHistories", () => {
  const results = (...holds: Hold[]) => checkHistories(holds, accounts, []).map((check) => check.holds);
  const released = { releasing: 8, released: { at: 9, outcome: "freed" as const } };

  test("finds two holders of a lock", () => {
    expect(results(hold(5, 50, released), hold(20, 60))).toEqual([true, true]);
    expect(results(hold(5, 50), hold(20, 60))).toEqual([false, true]);
  });

  test("finds a fenced account that forgot a write", () => {
    const resource = "fenced-1";
    const first = hold(5, 50, {
      resource,
      fence: 1,
      ...released,
      accesses: [
        { kind: "open", invoked: 5, balance: 0, answer: { at: 6, balance: 0 } },
        { kind: "write", invoked: 6, balance: 1, answer: { at: 7, balance: 1 } },
      ],
    });
    const opened = (balance: number) =>
      hold(20, 60, {
        resource,
        fence: 2,
        accesses: [{ kind: "open", invoked: 21, balance: 0, answer: { at: 22, balance } }],
      });
    expect(results(first, opened(1))).toEqual([true, true]);
    expect(results(first, opened(0))).toEqual([true, false]);
  });
});

describe("holdsOf", () => {
  test("builds a hold from its records, and finds a remaining() that promised too much", () => {
    const records: ClientRecord[] = [
      { at: 0, type: "acquiring", hold: "h", resource: "r", ttl: 100 },
      { at: 10, type: "granted", hold: "h", until: 95, fence: 3 },
      { at: 50, type: "valid", hold: "h", until: 140, extended: true },
      { at: 60, type: "releasing", hold: "h" },
      { at: 70, type: "released", hold: "h", outcome: "freed" },
    ];
    const [whole] = holdsOf(records);
    expect(whole).toMatchObject({ granted: 10, until: 140, fence: 3, releasing: 60, released: { at: 70 } });
    expect(whole!.excess).toBeLessThanOrEqual(0);
    // The client was stopped: its extension was answered only after the release.
    const late: ClientRecord = { at: 200, type: "valid", hold: "h", until: 200, extended: true };
    expect(holdsOf([...records, late])[0]).toMatchObject({ until: 140, renewed: 50, excess: -10 });
    const frozen: ClientRecord = { at: 500, type: "valid", hold: "h", until: 560, extended: false };
    expect(holdsOf([...records.slice(0, 2), frozen])[0]!.excess).toBe(450);
  });
});

describe("openLedger", () => {
  let directory: string;
  let ledger: Ledger;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), "redlock-edge-ledger-"));
    ledger = openLedger(directory, accounts);
  });
  afterEach(async () => {
    ledger.close();
    await rm(directory, { recursive: true });
  });
  const write = (account: string, balance: number, fence: number) =>
    ledger.execute({ kind: "write", account, balance, fence });
  const found = (name: string) => ledger.balances().find(({ account }) => account.name === name)!;

  test("accepts every write without a guard, and counts the lost updates", () => {
    for (const balance of [1, 2, 2, 1]) expect(write("plain-1", balance, 0)).toBe(balance);
    expect(found("plain-1")).toMatchObject({ acknowledged: 4, final: 1 });
    expect(lostUpdates(found("plain-1"))).toBe(3);
  });

  test("only `fence > last` lets an older write in before the newer one", () => {
    expect([write("naive-1", 1, 5), write("naive-1", 1, 6), write("naive-1", 2, 5)]).toEqual([1, 1, null]);
    expect(lostUpdates(found("naive-1"))).toBe(1);
    expect(found("naive-1").refused).toBe(1);
  });

  test("an opened account refuses all but the one who opened it last", () => {
    const open = (fence: number) => ledger.execute({ kind: "open", account: "fenced-1", fence });
    expect([open(5), open(6)]).toEqual([0, 0]);
    expect([write("fenced-1", 1, 5), write("fenced-1", 1, 6), open(5)]).toEqual([null, 1, null]);
    expect(found("fenced-1")).toMatchObject({ acknowledged: 1, final: 1, refused: 2, repeated: 0 });
    expect(open(6)).toBeNull();
    expect(found("fenced-1").repeated).toBe(1);
  });

  test("keeps the effects of each event", () => {
    for (const [event, run] of [
      ["a", "1"],
      ["b", "2"],
      ["a", "3"],
    ] as const)
      ledger.execute({ kind: "effect", event, run });
    expect(ledger.effects()).toEqual(
      new Map([
        ["a", ["1", "3"]],
        ["b", ["2"]],
      ]),
    );
  });
});
