import { expect, test } from "vitest";
import { holdsOf } from "./checks.ts";
import type { Run } from "./main.ts";
import { type Fault, faultKinds } from "./nemesis.ts";
import type { Hold } from "./records.ts";
import { evaluateRun } from "./report.ts";

// No mutant shows that chaos would notice a broken promise: each check finds one here.

const hold: Hold = {
  id: "0.0/1",
  resource: "fenced-1",
  called: 0,
  granted: 5,
  until: 90,
  fence: 7,
  ended: 50,
};
const next: Hold = { ...hold, id: "1.1/1", called: 70, granted: 75, until: 160, fence: 8, ended: 120 };
const refused = (code: string): Hold => ({ id: code, resource: "fenced-1", called: 0, refused: code });
const stored: Hold = {
  id: "0.0/3",
  resource: "event-1",
  called: 0,
  granted: 5,
  until: 90,
  ended: 30,
  answered: { at: 40, value: "0.0/3" },
};
const replay: Hold = {
  id: "1.1/2",
  resource: "event-1",
  called: 50,
  answered: { at: 60, value: "0.0/3" },
};

/** A run in which every kind of fault occurred, and each promise was kept. */
const good: Run = {
  seconds: 30,
  times: Object.fromEntries(faultKinds.map((kind) => [kind, 1])) as Run["times"],
  faults: [],
  failures: [],
  progress: { stuck: "", seconds: 1 },
  holds: [hold, next, refused("NO_QUORUM"), refused("LOCK_HELD"), stored, replay],
  last: new Map([["event-1", "0.0/3"]]),
};
const and = (...holds: Hold[]): Partial<Run> => ({ holds: [...good.holds, ...holds] });

test.each<[what: string, failed: string[], Partial<Run>]>([
  ["every promise", [], {}],
  ["two holders", ["holds exclude"], and({ ...next, id: "2", called: 80, granted: 85, fence: 9 })],
  ["two handlers", ["holds exclude"], and({ ...stored, id: "2", called: 6, granted: 10 })],
  ["a fence that falls", ["fences"], and({ ...next, id: "2", called: 140, granted: 145, fence: 6 })],
  ["a fence twice", ["fences"], and({ ...next, id: "2", called: 74, granted: 125, until: 130 })],
  [
    "a handler after the result",
    ["an event has one"],
    and({ ...stored, id: "2", called: 91, granted: 92, until: 99 }),
  ],
  [
    "a wrong answer",
    ["an event has one"],
    and({ ...replay, id: "2", answered: { at: 60, value: "another" } }),
  ],
  ["a result that is gone", ["an event has one"], { last: new Map([["event-1", null]]) }],
  ["a client that is not served", ["afterwards"], { progress: { stuck: "not everybody", seconds: 60 } }],
  ["a client that ended", ["afterwards"], { failures: ["client 1.1 ended by itself"] }],
  ["a fault that never occurred", ["everything has"], { times: { ...good.times, "link slow": 0 } }],
  ["no contention", ["everything has"], { holds: good.holds.filter(({ id }) => id !== "LOCK_HELD") }],
])("a run with %s fails: %j", (_what, expected, more) => {
  const { checks, passed } = evaluateRun({ ...good, ...more });
  const failed = checks.filter(({ holds }) => !holds).map(({ title }) => title);
  expect(failed).toEqual(expected.map((beginning) => expect.stringMatching(`^${beginning}`)));
  expect(passed).toBe(expected.length === 0);
});

test("a loss of memory explains what contradicts before its end", () => {
  const lost: Fault = { kind: "server killed, memory lost", target: "r0", from: 20, to: 30 };
  const more = and({ ...next, id: "2", called: 20, granted: 35, until: 49, ended: 40, fence: 6 });
  expect(evaluateRun({ ...good, ...more, faults: [lost] }).passed).toBe(true);
  expect(evaluateRun({ ...good, ...more }).passed).toBe(false);
});

test("records of a client make a hold", () => {
  const [whole] = holdsOf([
    { id: "h", resource: "r", called: 0 },
    { id: "h", granted: 10, until: 95, fence: 3 },
    { id: "h", until: 140 },
    { id: "h", until: 120 },
    { id: "h", ended: 60 },
  ]);
  expect(whole).toEqual({ id: "h", resource: "r", called: 0, granted: 10, until: 140, fence: 3, ended: 60 });
});
