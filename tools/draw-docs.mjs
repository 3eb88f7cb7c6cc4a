// Draws the playground's scenes for README.md and the docs: `node tools/draw-docs.mjs`, after a change of the library or of
// playground/ that changes them.
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { load, project } from "./load.mjs";

const { scenes } = await load("playground/scenes/index.ts");
const { docsPicture } = await load("playground/docs-picture.ts");
for (const scene of scenes) {
  await writeFile(join(project, "docs/images", `${scene.id}.svg`), await docsPicture(scene));
  console.log(`docs/images/${scene.id}.svg`);
}
