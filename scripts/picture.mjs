// The picture of a timeline: `node scripts/picture.mjs timeline.json` writes timeline.html beside it; with --svg,
// timeline.svg.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { load, project } from "./load.mjs";

/** The script of the pages that pictureHtml() makes. */
export async function pictureScript() {
  const { outputFiles } = await build({
    entryPoints: [join(project, "src/picture/browser.ts")],
    bundle: true,
    minify: true,
    write: false,
    format: "esm",
    target: "es2022",
  });
  return outputFiles[0].text;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [file, form] = process.argv.slice(2);
  if (file === undefined || (form !== undefined && form !== "--svg")) {
    console.error("usage: node scripts/picture.mjs <timeline.json> [--svg]");
    process.exit(2);
  }
  const timeline = JSON.parse(readFileSync(file, "utf8"));
  const target = `${file.replace(/\.json$/, "")}.${form === "--svg" ? "svg" : "html"}`;
  const { pictureHtml, toSvg } = await load("src/picture/index.ts");
  writeFileSync(target, form === "--svg" ? toSvg(timeline) : pictureHtml(timeline, await pictureScript()));
  console.log(target);
}
