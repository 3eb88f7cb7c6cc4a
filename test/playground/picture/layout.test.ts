import { describe, expect, it } from "vitest";
import { lettersOf, shapesOf } from "../../../playground/picture/layout.ts";
import type { Timeline, TimelineEvent } from "../../../playground/picture/timeline.ts";

// Lanes of every timeline here: 0 is client A, 1 is B, 2 to 4 are the endpoints x, y, z.
const shapes = (events: TimelineEvent[], more: Partial<Timeline> = {}) =>
  shapesOf({ version: 1, title: "", clients: ["A", "B"], endpoints: ["x", "y", "z"], events, ...more });

const about = { client: "A", endpoint: "x", request: "1", operation: "acquire", key: "k" };
const sent = (time: number): TimelineEvent => ({ ...about, time, phase: "sent" });
const executed = (time: number): TimelineEvent => ({ ...about, time, phase: "executed", outcome: "granted" });
const answered = (time: number): TimelineEvent => ({ ...about, time, phase: "answered", outcome: "granted" });
const lost = (time: number, what: "request" | "reply"): TimelineEvent => ({
  ...about,
  time,
  phase: "lost",
  what,
});

describe("requests and replies", () => {
  const ends = (events: TimelineEvent[]) =>
    shapes(events).flights.map(({ kind, fate, from, to }) => [
      kind,
      fate,
      from.lane,
      from.time,
      to.lane,
      to.time,
    ]);

  it("of which the reply is lost have arrived", () => {
    expect(ends([sent(1), executed(5), lost(10, "reply")])).toEqual([
      ["request", "arrived", 0, 1, 2, 5],
      ["reply", "lost", 2, 5, 0, 10],
    ]);
  });

  it("that nothing more is known of stay open", () => {
    expect(ends([sent(1)])).toEqual([["request", "open", 0, 1, 2, 1]]);
  });

  it("are late if they take much longer than others", () => {
    const other = (request: string, time: number): TimelineEvent[] => [
      { ...sent(time), request },
      { ...executed(time + 4), request },
      { ...answered(time + 8), request },
    ];
    const { flights } = shapes([...other("2", 1), ...other("3", 2), sent(30), executed(60), answered(64)]);
    expect(flights.filter(({ late }) => late).map(({ kind, to }) => [kind, to.time])).toEqual([
      ["request", 60],
    ]);
  });

  it("are not late where all of them are fast, by a clock that has whole ms", () => {
    const others = ["2", "3", "4"].flatMap((request) => [
      { ...sent(1), request },
      { ...executed(1), request },
      { ...answered(1), request },
    ]);
    const { flights } = shapes([...others, sent(2), executed(19), answered(20)]);
    expect(flights.filter(({ late }) => late)).toEqual([]);
  });

  it("answered without an execution turn half-way", () => {
    expect(ends([sent(2), answered(8)])).toEqual([
      ["request", "arrived", 0, 2, 2, 5],
      ["reply", "arrived", 2, 5, 0, 8],
    ]);
  });
});

describe("what is stored", () => {
  const stored = (time: number, more: Partial<TimelineEvent> = {}): TimelineEvent => ({
    ...{ time, phase: "stored", endpoint: "x", key: "k", holder: "A", fence: 1, until: time + 100 },
    ...more,
  });
  const bars = (events: TimelineEvent[], more: Partial<Timeline> = {}) => shapes(events, more).bars;

  it("expires without another event, and not later because of one", () => {
    const expired = { lane: 2, row: 0, from: 5, to: 105, end: "expired", holder: 0 };
    expect(bars([stored(5)], { to: 400 })).toMatchObject([expired]);
    const removed: TimelineEvent = { time: 300, phase: "removed", endpoint: "x", key: "k", holder: "A" };
    expect(bars([stored(5), removed])).toMatchObject([expired]);
    expect(bars([stored(5), stored(200)], { to: 250 })[0]).toMatchObject(expired);
  });

  it("is replaced with another fence", () => {
    expect(bars([stored(5), stored(60, { fence: 2 })]).map(({ end }) => end)).toEqual(["replaced", "open"]);
  });
});

describe("a validity", () => {
  const valid = (time: number, until: number, safe: number): TimelineEvent => ({
    ...{ time, phase: "valid", client: "A", key: "k", fence: 7, until, safe },
  });

  it("has no such part if it ends before, nor if it is extended before", () => {
    const ended: TimelineEvent = { time: 100, phase: "ended", client: "A", key: "k" };
    expect(shapes([valid(10, 200, 180), ended]).bars[0]).toMatchObject({ to: 100, unsafe: [] });
    expect(shapes([valid(10, 200, 5)], { to: 400 }).bars[0]?.unsafe).toEqual([{ from: 10, to: 200 }]);
    const [extended] = shapes([valid(10, 200, 180), valid(100, 290, 270)], { to: 400 }).bars;
    expect(extended?.unsafe).toEqual([{ from: 270, to: 290 }]);
    const [late] = shapes([valid(10, 200, 180), valid(190, 380, 360)], { to: 400 }).bars;
    expect(late?.unsafe).toEqual([
      { from: 180, to: 190 },
      { from: 360, to: 380 },
    ]);
  });
});

describe("calls, faults and verdicts", () => {
  it("a call that does not return has no result", () => {
    const { calls } = shapes([{ time: 2, phase: "called", client: "A", operation: "acquire", call: "2" }], {
      to: 9,
    });
    expect(calls).toMatchObject([{ from: 2, to: 9, outcome: undefined, votes: undefined }]);
  });

  it("paused and frozen clients are hatched, endpoints are not; faults that overlap have rows", () => {
    const fault = (time: number, name: string, more: Partial<TimelineEvent>): TimelineEvent => ({
      ...{ time, phase: "fault", name },
      ...more,
    });
    const events = [
      fault(1, "paused", { client: "A" }),
      fault(2, "slow", { client: "A" }),
      fault(3, "frozen", { endpoint: "x" }),
      fault(4, "frozen link", { client: "B", endpoint: "x" }),
      { time: 20, phase: "healed", client: "A", name: "paused" } as const,
    ];
    const { faults, lanes } = shapes(events, { to: 30 });
    const shown = faults.map((each) => [each.name, each.lane, each.other, each.to, each.hatched, each.row]);
    expect(shown).toEqual([
      ["paused", 0, undefined, 20, true, 0],
      ["slow", 0, undefined, 30, false, 1],
      ["frozen", 2, undefined, 30, false, 0],
      ["frozen link", 2, 1, 30, false, 1],
    ]);
    expect(faults.filter(({ open }) => !open).map(({ name }) => name)).toEqual(["paused"]);
    expect(lanes.map(({ faultRows }) => faultRows)).toEqual([2, 0, 2, 0, 0]);
  });

  it("verdicts have a lane, or concern all", () => {
    const { verdicts } = shapes([
      { time: 5, phase: "violated", name: "one holder", client: "B" },
      { time: 6, phase: "upheld", name: "fences rise" },
    ]);
    expect(verdicts.map(({ isBroken, name, lane }) => [isBroken, name, lane])).toEqual([
      [true, "one holder", 1],
      [false, "fences rise", -1],
    ]);
  });
});

describe("lanes", () => {
  it.each([
    ["A, B", "A, B"],
    ["client A, client B", "A, B"],
    ["worker, runner", "A, B"],
    ["a 1, b 1", "A, B"],
  ])("%s have the letters %s", (names, letters) => {
    expect(lettersOf(names.split(", "))).toEqual(letters.split(", "));
  });
});
