// Draws the playground's scenes for docs/internals/algorithm.md and docs/fencing.md: `node tools/draw-docs.mjs`, after a
// change of the library or of playground/ that changes them.
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { load, project } from "./load.mjs";

const { presets } = await load("playground/presets.ts");
const { record } = await load("playground/recording.ts");
const { toSvg } = await load("playground/picture/index.ts");
for (const preset of presets) {
  const { events, end, stage } = await record(preset, preset.fencing);
  const timeline = stage.world.timeline(preset.shows);
  const endpoints = timeline.endpoints.filter((name) => events.some(({ endpoint }) => endpoint === name));
  const svg = toSvg({ ...timeline, endpoints, from: 0, to: end, events });
  await writeFile(join(project, "docs/images", `${preset.id}.svg`), svg);
  console.log(`docs/images/${preset.id}.svg`);
}
