// Draws docs/images/*.svg: `node tools/draw-docs.mjs`, after a change of the library or of pictures/ that changes them.
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { load, project } from "./load.mjs";

const { drawPictures } = await load("pictures/pictures.ts");
for (const [name, svg] of await drawPictures()) {
  await writeFile(join(project, "docs/images", name), svg);
  console.log(`docs/images/${name}`);
}
