import { expect, it } from "vitest";
import { type Click, readMoment, usualSeed, writeMoment } from "../../playground/address.ts";
import type { TimelineEvent } from "../../playground/picture/timeline.ts";
import { Replay } from "../../playground/replay.ts";
import { scenes } from "../../playground/scenes/index.ts";

// Links to the playground: what they say, and that they lead everybody to the same world.

const clicks: Click[] = [
  { time: 381, part: "Ann", deed: "Wake up" },
  { time: 381, part: "redis-2", deed: "Clock +5 s" },
  { time: 500, part: "latency", deed: "120" },
];

it.each([
  [{ scene: "twice", act: 0, seed: usualSeed, clicks: [] }, "#scene=twice"],
  [
    { scene: "late-writer", act: 1, seed: usualSeed, clicks: [], time: 3_777 },
    "#scene=late-writer&act=2&t=3777",
  ],
  [
    { scene: "late-writer", act: 1, seed: 7, clicks, time: 600 },
    "#scene=late-writer&act=2&seed=7&do=381.Ann.Wake+up~381.redis-2.Clock+%2B5+s~500.latency.120&t=600",
  ],
])("a link says %o", (moment, hash) => {
  expect(writeMoment(moment)).toBe(hash);
  expect(readMoment(hash, scenes)).toEqual({ time: undefined, ...moment });
});

it.each([
  "",
  "#scene=none",
  "#scene=constructor",
  "#scene=late-writer&act=3",
  "#scene=late-writer&act=1.5",
  ...["NaN", "1e9", "-5", "", "0x10", "12.5", "1".repeat(7)].map((time) => `#scene=twice&t=${time}`),
  "#scene=twice&seed=x",
  "#scene=twice&do=x.Ann.Freeze",
  "#scene=twice&do=5.Ann.Freeze~4.Ann.Freeze",
  "#scene=twice&do=5.Ann.Freeze.now",
  `#scene=twice&do=${Array(501).fill("5.Ann.Freeze").join("~")}`,
  "#%E0%A4%A",
])("the link %s leads to nothing", (hash) => {
  expect(readMoment(hash, scenes)).toBeUndefined();
});

it("what somebody has done happens again from its link, however time passes", async () => {
  const scene = scenes.find(({ id }) => id === "late-writer")!;
  const begun = (done: readonly Click[]) => {
    const events: TimelineEvent[] = [];
    const replay = new Replay(scene, { act: 1, seed: 5, clicks: done }, (event) => events.push(event));
    void replay.stage.play();
    return { replay, events };
  };
  const live = begun([]);
  const frames = async (to: number) => {
    while (live.replay.elapsed < to) await live.replay.advance(live.replay.elapsed + 16.7);
  };
  for (const [time, part, deed] of [
    [200, "redis-1", "Kill"],
    [350, "Bob", "Acquire"],
    [900, "Ann", "Wake up"],
    [900, "Ann", "Write"],
    [1_000, "redis-1", "Start empty"],
    [1_100, "latency", "120"],
    [1_200, "redis-2", "Cut off Bob"],
    [1_300, "nobody", "Freeze"],
  ] as const) {
    await frames(time);
    await live.replay.act(part, deed);
  }
  await frames(6_000);
  const link = begun(live.replay.clicks);
  await link.replay.advance(live.replay.elapsed);
  // Calls are numbered in the process.
  const shown = (all: readonly TimelineEvent[]) => all.map(({ call, ...event }) => event);
  expect(shown(link.events)).toEqual(shown(live.events));
  expect(live.events.filter(({ phase }) => phase === "fault").map(({ name }) => name)).toEqual(
    expect.arrayContaining(["killed", "frozen", "partition"]),
  );
  expect(link.replay.stage.lines()).toEqual(live.replay.stage.lines());
});

it.each<[string, string[]]>([
  ["380.redis-1.Kill~1200.redis-1.Start", []],
  ["1200.redis-1.Clock+%2B5+s~1200.redis-2.Clock+%2B5+s~2400.Ann.Wake+up", ["TWO HOLDERS"]],
  [
    "1200.redis-1.Kill~1200.redis-2.Kill~1300.redis-1.Start+empty~1300.redis-2.Start+empty~2400.Ann.Wake+up",
    ["TWO HOLDERS"],
  ],
])("after %s, two processes that run hold the lock: %o", async (done, broken) => {
  const moment = readMoment(`#scene=late-writer&act=2&do=${done}`, scenes)!;
  const violated: string[] = [];
  const replay = new Replay(scenes.find(({ id }) => id === moment.scene)!, moment, ({ phase, name = "" }) => {
    if (phase === "violated") violated.push(name);
  });
  void replay.stage.play();
  await replay.advance(5_000);
  expect(violated).toEqual(broken);
});
