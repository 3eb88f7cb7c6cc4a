import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { drawPictures } from "../../pictures/pictures.ts";

test("the docs' pictures show what the library does now; if they differ, run tools/draw-docs.mjs", async () => {
  for (const [name, svg] of await drawPictures()) {
    expect(svg, name).toBe(readFileSync(`docs/images/${name}`, "utf8"));
  }
});
