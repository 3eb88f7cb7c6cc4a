import { expect, test } from "vitest";
import { record } from "../../playground/recording.ts";
import { scenes } from "../../playground/scenes/index.ts";

// What the scenes are to show happens. picture/svg.test.ts compares it with the docs' pictures.

const acts = scenes.flatMap((scene) => scene.acts.map((_, act) => [scene.id, act, scene] as const));

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
