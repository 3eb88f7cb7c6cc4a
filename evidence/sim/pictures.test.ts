import { beforeAll, expect, test } from "vitest";
import type { Timeline, TimelineEvent } from "../../playground/picture/index.ts";
import { plays } from "./pictures.ts";
import { perform } from "./stage.ts";

// The pictures of docs/internals/algorithm.md and docs/fencing.md show what their titles say.

const timelines = new Map<string, Timeline>();

beforeAll(async () => {
  for (const [file, play] of Object.entries(plays)) timelines.set(file, await perform(play));
});

const eventsOf = (file: string, phase: TimelineEvent["phase"]) =>
  timelines.get(file)!.events.filter((event) => event.phase === phase);
const results = (file: string) =>
  eventsOf(file, "returned").map(({ client, operation, outcome }) => `${client} ${operation} ${outcome}`);
const places = (events: readonly TimelineEvent[]) =>
  events.map(({ endpoint, holder }) => `${holder}: ${endpoint}`).sort();

test("one endpoint down: two votes are a quorum", () => {
  expect(results("acquire-one-down.svg")).toEqual([
    "client A acquire granted",
    "client B acquire held",
    "client A release granted",
    "client B acquire granted",
    "client B release granted",
  ]);
});

test("an even split: one endpoint each, both rolled back, then one after the other", () => {
  const [first, second] = eventsOf("even-split.svg", "stored");
  expect(new Set([first!.holder, second!.holder]).size).toBe(2);
  expect(first!.endpoint).not.toBe(second!.endpoint);
  const rolledBack = eventsOf("even-split.svg", "removed").slice(0, 2);
  expect(places(rolledBack)).toEqual(places([first!, second!]));
  expect(results("even-split.svg").slice(0, 3)).toEqual([
    "client A acquire granted",
    "client A release granted",
    "client B acquire granted",
  ]);
});

test("expired on arrival: all granted it, and one round later it is relied on, for a shorter time than it stands", () => {
  const file = "expired-on-arrival.svg";
  const stored = eventsOf(file, "stored");
  expect(stored).toHaveLength(6);
  const [valid] = eventsOf(file, "valid");
  expect(valid!.time).toBeGreaterThan(stored[3]!.time);
  expect(valid!.safe).toBeLessThan(valid!.until!);
  expect(valid!.until).toBeLessThanOrEqual(Math.min(...stored.slice(3).map(({ until }) => until!)));
});

test("a late writer: its write is refused for its smaller fence", () => {
  const file = "late-writer.svg";
  expect(results(file).at(-1)).toBe("client A write held");
  const fences = eventsOf(file, "valid").map(({ client, fence }) => [client, fence] as const);
  expect(fences.map(([client]) => client)).toEqual(["client A", "client B"]);
  expect(fences[0]![1]!).toBeLessThan(fences[1]![1]!);
  expect(results(file)).toContain("client B write granted");
});
