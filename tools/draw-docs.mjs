// Draws the playground's scenes for README.md and the docs: `node tools/draw-docs.mjs`, after a change of the library or of
// playground/ that changes them. The acts of a scene stand one below the other.
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { load, project } from "./load.mjs";

const { scenes } = await load("playground/scenes/index.ts");
const { record } = await load("playground/recording.ts");
const { toSvg } = await load("playground/picture/index.ts");
for (const scene of scenes) {
  const recordings = await Promise.all(scene.acts.map((_, act) => record(scene, act)));
  const to = Math.max(...recordings.map(({ end }) => end));
  const timelines = recordings.map(({ events, stage }, act) => {
    const timeline = stage.world.timeline(scene.acts[act].name);
    const endpoints = timeline.endpoints.filter((name) => events.some(({ endpoint }) => endpoint === name));
    return { ...timeline, endpoints, from: 0, to, events };
  });
  // So narrow that their texts can be read on a phone.
  const isPlain = ["twice", "mailbox"].includes(scene.id);
  const svg = toSvg(timelines, { title: scene.shows, isPlain, ...(isPlain && { width: 560 }) });
  await writeFile(join(project, "docs/images", `${scene.id}.svg`), svg);
  console.log(`docs/images/${scene.id}.svg`);
}
