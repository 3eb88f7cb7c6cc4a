import { expect, test } from "vitest";
import { type Hold, holdsOf } from "./holds.ts";
import type { Run } from "./main.ts";
import { type FaultCounts, faultKinds } from "./nemesis.ts";
import { accounts } from "./records.ts";
import { evaluateRun } from "./report.ts";

// No mutant shows that chaos would notice a broken promise: each check finds one here.

const hold: Hold = {
  id: "0.0/1",
  resource: "fenced-1",
  ttl: 100,
  invoked: 0,
  granted: 5,
  until: 90,
  renewed: 5,
  excess: -5,
  fence: 7,
  releasing: 50,
  released: { at: 60, outcome: "freed" },
  ran: [],
  accesses: [
    { kind: "open", invoked: 6, balance: 0, answer: { at: 7, balance: 0 } },
    { kind: "write", invoked: 8, balance: 1, answer: { at: 9, balance: 1 } },
  ],
};
const refused: Hold = {
  id: "0.0/2",
  resource: "fenced-1",
  ttl: 100,
  invoked: 0,
  renewed: 0,
  excess: -5,
  refused: "NO_QUORUM",
  ran: [],
  accesses: [],
};
const next: Hold = {
  ...hold,
  id: "1.1/1",
  invoked: 70,
  granted: 75,
  until: 160,
  fence: 8,
  releasing: 120,
  released: { at: 130, outcome: "freed" },
  accesses: [],
};
const event: Hold = {
  ...refused,
  id: "0.0/3",
  resource: "event-1",
  granted: 5,
  until: 90,
  releasing: 30,
  ran: [{ at: 40, how: "executed" }],
};
const { refused: _, ...stored } = event;
const replay: Hold = {
  ...refused,
  id: "1.1/2",
  resource: "event-1",
  invoked: 50,
  answered: { at: 60, status: "replayed", value: "0.0/3" },
};

const times = Object.fromEntries(faultKinds.map((kind) => [kind, 1])) as FaultCounts["times"];
const faults: FaultCounts = { times, hits: { "link slow": 3 }, spans: [] };

/** A run in which every kind of fault occurred, and each promise was kept. */
const good: Run = {
  seconds: 30,
  faults,
  failures: [],
  progress: { stuck: "", seconds: 1 },
  holds: [hold, refused, next, stored, replay],
  contended: 3,
  balances: accounts.map((account) => ({ account, acknowledged: 4, balance: 4, refused: 1 })),
  effects: new Map([["event-1", ["0.0/3"]]]),
  last: new Map([["event-1", "0.0/3"]]),
};
const and = (...holds: Hold[]): Partial<Run> => ({ holds: [...good.holds, ...holds] });
const opened = { kind: "open", invoked: 76, balance: 0, answer: { at: 77, balance: 0 } } as const;

test.each<[what: string, failed: string[], Partial<Run>]>([
  ["every promise", [], {}],
  ["two holders", ["holds exclude"], and({ ...next, id: "2", invoked: 80, granted: 85, fence: 9 })],
  ["two handlers", ["holds exclude"], and({ ...event, id: "2", invoked: 6, granted: 10, ran: [] })],
  [
    "a fence that falls",
    ["holds exclude"],
    and({
      ...next,
      id: "2",
      invoked: 140,
      granted: 145,
      until: 149,
      releasing: 147,
      released: { at: 149, outcome: "freed" },
      fence: 6,
    }),
  ],
  [
    "a fence that is drawn again",
    ["holds exclude"],
    { holds: [hold, refused, { ...next, fence: 7 }, stored, replay] },
  ],
  [
    "a smaller fence that an account accepts",
    ["accounts accept"],
    { holds: [hold, refused, { ...next, accesses: [opened] }, stored, replay] },
  ],
  ["remaining() that promised too much", ["remaining() never"], and({ ...refused, id: "2", excess: 3 })],
  [
    "a second result",
    ["an event has one", "a stored run"],
    and({ ...stored, id: "2", invoked: 91, granted: 92, until: 99, ran: [{ at: 95, how: "executed" }] }),
  ],
  [
    "a wrong answer",
    ["an event has one"],
    and({ ...replay, id: "2", answered: { at: 60, status: "replayed", value: "another" } }),
  ],
  ["a result that is gone", ["an event has one"], { last: new Map([["event-1", null]]) }],
  ["a second effect", ["a stored run"], { effects: new Map([["event-1", ["0.0/3", "0.0/3"]]]) }],
  [
    "a lost update",
    ["fenced accounts"],
    { balances: good.balances.map((balance) => ({ ...balance, balance: 3 })) },
  ],
  [
    "a client that is not served",
    ["afterwards"],
    { progress: { stuck: "not everybody gets every lock", seconds: 60 } },
  ],
  ["a client that ended", ["afterwards"], { failures: ["client 1.1 ended by itself"] }],
  [
    "a fault that never occurred",
    ["everything has"],
    { faults: { ...faults, times: { ...times, "link slow": 0 } } },
  ],
  ["no contention", ["everything has"], { contended: 0 }],
])("a run with %s fails: %j", (_what, expected, more) => {
  const { checks, passed, text } = evaluateRun({ ...good, ...more });
  const failed = checks.filter(({ holds }) => !holds).map(({ title }) => title);
  expect(passed).toBe(expected.length === 0);
  expect(failed).toEqual(
    expected.map((beginning) => expect.stringMatching(`^${beginning.replace("()", "\\(\\)")}`)),
  );
  expect(text.match(/^ {2}FAIL /gm)?.length ?? 0).toBe(expected.length);
});

test("a loss of memory explains what contradicts before its end", () => {
  const lost = { kind: "server killed, memory lost", target: "r0", from: 20, to: 30 } as const;
  const more = {
    ...and({
      ...next,
      id: "2",
      invoked: 20,
      granted: 35,
      until: 49,
      releasing: 40,
      released: { at: 45, outcome: "freed" },
      fence: 6,
    }),
  };
  const failures = (spans: FaultCounts["spans"]) =>
    evaluateRun({ ...good, ...more, faults: { ...faults, spans } }).checks.filter(({ holds }) => !holds)
      .length;
  expect([failures([lost]), failures([]) > 0]).toEqual([0, true]);
});

test("an extension that is answered after the release prolongs nothing", () => {
  const [whole] = holdsOf([
    { at: 0, type: "acquiring", hold: "h", resource: "r", ttl: 100 },
    { at: 10, type: "granted", hold: "h", until: 95, fence: 3 },
    { at: 50, type: "valid", hold: "h", until: 140, extended: true },
    { at: 60, type: "releasing", hold: "h" },
    { at: 200, type: "valid", hold: "h", until: 200, extended: true },
  ]);
  expect(whole).toMatchObject({ granted: 10, until: 140, renewed: 50, excess: -10, releasing: 60 });
});
