import { expect, test } from "vitest";
import type { Timeline, TimelineEvent } from "../../playground/picture/timeline.ts";
import { cutDown } from "./cut-down.ts";

/** p0 and p1 collide on `a`; p2 works on `b`, and p3 holds what the endpoints have of `a`. */
const events: readonly TimelineEvent[] = [
  { time: 1, phase: "sent", client: "p0", endpoint: "r0", request: "early", key: "a" },
  { time: 2, phase: "executed", client: "p0", endpoint: "r0", request: "early" },
  { time: 3, phase: "sent", client: "p0", endpoint: "r1", request: "late", key: "a" },
  { time: 4, phase: "fault", client: "p0", name: "paused" },
  { time: 5, phase: "healed", client: "p0", name: "paused" },
  { time: 6, phase: "fault", endpoint: "r2", name: "silent" },
  { time: 7, phase: "fault", endpoint: "r1", name: "slow" },
  { time: 8, phase: "stored", endpoint: "r0", key: "a", holder: "p3", until: 500 },
  { time: 10, phase: "called", client: "p0", call: "c1", operation: "acquire", key: "a" },
  { time: 11, phase: "called", client: "p2", call: "c2", operation: "acquire", key: "b" },
  { time: 12, phase: "sent", client: "p2", endpoint: "r2", request: "other", key: "b" },
  { time: 20, phase: "returned", client: "p0", call: "c1", outcome: "granted", key: "a" },
  { time: 20, phase: "valid", client: "p0", key: "a", until: 200 },
  { time: 30, phase: "called", client: "p0", call: "c3", operation: "extend", key: "a" },
  { time: 35, phase: "valid", client: "p0", key: "a", until: 300 },
  { time: 40, phase: "called", client: "p1", call: "c4", operation: "acquire", key: "a" },
  { time: 45, phase: "executed", client: "p0", endpoint: "r1", request: "late" },
  {
    time: 60,
    phase: "violated",
    client: "p1",
    name: "mutual exclusion",
    detail: "a granted to p1, p0 has it",
  },
  { time: 61, phase: "answered", client: "p0", endpoint: "r1", request: "late" },
  { time: 90, phase: "called", client: "p1", call: "c5", operation: "release", key: "a" },
  { time: 95, phase: "violated", name: "a later one", detail: "p2 is wrong" },
];
const timeline: Timeline = {
  version: 1,
  title: "two holders",
  clients: ["p0", "p1", "p2", "p3"],
  endpoints: ["r0", "r1", "r2"],
  from: 0,
  to: 1_000,
  events,
};

test("what is not broken is not cut", () => {
  const sound = { ...timeline, events: events.filter(({ phase }) => phase !== "violated") };
  expect(cutDown(sound)).toBe(sound);
});

test("left are the clients of the violation and who holds the same, and the endpoints that took part", () => {
  const cut = cutDown(timeline);
  expect(cut.clients).toEqual(["p0", "p1", "p3"]);
  expect(cut.endpoints).toEqual(["r0", "r1"]);
});

test("who removed what the clients of the violation had stored is left, too", () => {
  const removal: readonly TimelineEvent[] = [
    { time: 50, phase: "sent", client: "p2", endpoint: "r2", request: "wrong", key: "a" },
    { time: 55, phase: "executed", client: "p2", endpoint: "r2", request: "wrong" },
    { time: 55, phase: "removed", endpoint: "r2", key: "a", holder: "p0" },
  ];
  const at = events.findIndex(({ phase }) => phase === "violated");
  const cut = cutDown({ ...timeline, events: [...events.slice(0, at), ...removal, ...events.slice(at)] });
  expect(cut.clients).toEqual(["p0", "p1", "p2", "p3"]);
  expect(cut.events).toEqual(expect.arrayContaining([...removal]));
  expect(cut.events.some(({ request }) => request === "other")).toBe(false);
});

test("the time begins with the call that got what is relied on, and ends soon after the violation", () => {
  const { from, to } = cutDown(timeline);
  expect(from).toBe(10);
  expect(to).toBe(64);
});

test("late requests and faults that last into that time are whole; what was over before is gone", () => {
  const left = cutDown(timeline).events;
  expect(left.filter(({ request }) => request === "late")).toHaveLength(3);
  expect(left.filter(({ request }) => request === "early" || request === "other")).toEqual([]);
  expect(left.flatMap(({ phase, name }) => (phase === "fault" ? [name] : []))).toEqual(["slow"]);
  expect(left.flatMap(({ phase, name }) => (phase === "violated" ? [name] : []))).toEqual([
    "mutual exclusion",
  ]);
  expect(left.some(({ phase, holder }) => phase === "stored" && holder === "p3")).toBe(true);
  expect(left.some(({ call }) => call === "c5" || call === "c2")).toBe(false);
});

test("a violation that names nobody is about all clients", () => {
  const nobody = {
    time: 60,
    phase: "violated",
    name: "no lost update",
    detail: "a: 2 increments came to 1",
  } as const;
  const all = [...events.filter(({ time, phase }) => time <= 60 && phase !== "violated"), nobody];
  expect(cutDown({ ...timeline, events: all }).clients).toEqual(timeline.clients);
});

test("the time of a violation without any call is not empty", () => {
  const only = [events.find(({ phase }) => phase === "violated")!];
  const { from, to } = cutDown({ ...timeline, events: only });
  expect(to! - from!).toBeGreaterThan(0);
});
