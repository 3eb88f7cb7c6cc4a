import { expect, test } from "vitest";
import { usualSeed } from "../../playground/address.ts";
import type { TimelineEvent } from "../../playground/picture/timeline.ts";
import { record } from "../../playground/recording.ts";
import { Replay } from "../../playground/replay.ts";
import { scenes } from "../../playground/scenes/index.ts";

// The playground's scenes, without its page: what they are to show happens. picture/svg.test.ts compares it with the docs' pictures.

const acts = scenes.flatMap((scene) => scene.acts.map((_, act) => [scene.id, act, scene] as const));

test.each(acts)("%s, act %i, happens as it was recorded, however its time passes", async (_, act, scene) => {
  const { events, end } = await record(scene, act);
  const again: TimelineEvent[] = [];
  const replay = new Replay(scene, { act, seed: usualSeed, clicks: [] }, (event) => again.push(event));
  void replay.stage.play();
  // The frames of a display.
  while (replay.elapsed < end) await replay.advance(replay.elapsed + 17);
  // Calls are numbered in the process.
  const shown = (all: readonly TimelineEvent[]) => all.map(({ call, ...event }) => event);
  expect(shown(again)).toEqual(shown(events));
});

// Pictures and captions are files. Before you write them anew, by `-u` and tools/draw-docs.mjs, read whether each caption says
// what the picture shows.
test("each caption comes in its time, and each act ends as its last line says", async () => {
  const lines: string[] = [];
  for (const [id, act, scene] of acts) {
    const { steps, stage } = await record(scene, act);
    lines.push(`${id}, act ${act}`);
    lines.push(...steps.map(({ time, text }) => `${String(time).padStart(6)} ms  ${text}`));
    lines.push(`           ${stage.outcome()}`, "");
  }
  await expect(lines.join("\n")).toMatchFileSnapshot("captions.txt");
});
