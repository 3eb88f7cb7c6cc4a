import { describe, expect, it } from "vitest";
import type { Timeline, TimelineEvent } from "../../../playground/picture/timeline.ts";
import { appended, ViewState } from "../../../playground/picture/view.ts";

describe("the view", () => {
  const of = (...actions: ((view: ViewState) => void)[]) => {
    const view = new ViewState({ from: 0, to: 100 });
    for (const action of actions) action(view);
    return [view.range.from, view.range.to];
  };

  it("zooms around a time, and not out of the recording", () => {
    expect(of((view) => view.zoom(2))).toEqual([25, 75]);
    expect(of((view) => view.zoom(2, 20))).toEqual([10, 60]);
    expect(of((view) => view.zoom(0.1))).toEqual([0, 100]);
    expect(of((view) => view.zoom(1_000))).toEqual([0, 100]);
  });

  it.each<[string, (view: ViewState) => void, [from: number, to: number]]>([
    ["a fifth", (view) => view.pan(0.2), [35, 85]],
    ["beyond the end", (view) => view.pan(9), [50, 100]],
    ["before the beginning", (view) => view.pan(-9), [0, 50]],
    ["to a time", (view) => view.include(90), [50, 100]],
    ["to see all", (view) => view.all(), [0, 100]],
  ])("moves as far as there is something: %s", (_, action, range) => {
    expect(of((view) => view.zoom(2), action)).toEqual(range);
  });

  it("goes along with a live recording at its end only", () => {
    const grow = (view: ViewState) => view.grow({ from: 50, to: 150 });
    expect(of(grow)).toEqual([50, 150]);
    expect(of((view) => view.zoom(2, 100), grow)).toEqual([100, 150]);
    expect(of((view) => view.zoom(2), grow)).toEqual([50, 100]);
  });
});

describe("a live recording", () => {
  const timeline = (events: TimelineEvent[]): Timeline => ({
    ...{ version: 1, title: "", clients: [], endpoints: [], events },
  });
  const called = (time: number): TimelineEvent => ({ time, phase: "called", client: "A" });
  const times = (one: Timeline) => one.events.map(({ time }) => time);

  it("keeps the order of times, and its beginning", () => {
    const grown = appended(timeline([called(5), called(9)]), [called(12), called(7)], {});
    expect(times(grown)).toEqual([5, 7, 9, 12]);
    expect([grown.from, grown.to]).toEqual([5, 12]);
    expect(appended(grown, [], { now: 30 })).toMatchObject({ from: 5, to: 30 });
  });

  it("forgets what is old and has ended, and keeps what goes on", () => {
    const stored = (time: number, more: Partial<TimelineEvent> = {}): TimelineEvent => ({
      ...{ time, phase: "stored", endpoint: "x", key: "k", holder: "A" },
      ...more,
    });
    const events: TimelineEvent[] = [
      called(1),
      stored(2),
      stored(3, { holder: "B", until: 20 }),
      stored(4, { key: "removed" }),
      { time: 5, phase: "removed", endpoint: "x", key: "removed" },
      { time: 6, phase: "valid", client: "A", key: "k" },
      { time: 7, phase: "fault", endpoint: "x", name: "slow" },
      { time: 8, phase: "fault", endpoint: "x", name: "cut" },
      { time: 9, phase: "healed", endpoint: "x", name: "cut" },
      called(95),
    ];
    const grown = appended(timeline(events), [called(100)], { latest: 60 });
    expect(times(grown)).toEqual([2, 6, 7, 95, 100]);
    expect(grown.from).toBe(1);
  });
});
