// Draws the pictures of docs/internals/algorithm.md and docs/fencing.md with the simulator: `node tools/draw-docs.mjs`,
// after a change of the library or of picture/ that changes them.
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { load, project } from "./load.mjs";

const { drawPictures } = await load("evidence/sim/draw-pictures.ts");
for (const [file, svg] of await drawPictures()) {
  await writeFile(join(project, "docs/images", file), svg);
  console.log(`docs/images/${file}`);
}
