// `npm run picture -- timeline.json` draws a timeline (docs/timeline.md): it writes timeline.html beside it; with --svg,
// timeline.svg.
import { readFileSync, writeFileSync } from "node:fs";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { load, project } from "./load.mjs";

/**
 * A script for a page: one file, with all that it imports.
 *
 * @param {string} entry path relative to the project, for example `src/picture/browser.ts`
 */
export async function browserScript(entry) {
  const { outputFiles } = await build({
    absWorkingDir: project,
    entryPoints: [entry],
    bundle: true,
    minify: true,
    write: false,
    format: "esm",
    target: "es2022",
  });
  return outputFiles[0].text;
}

/** The script of the pages that pictureHtml() makes. */
export const pictureScript = () => browserScript("src/picture/browser.ts");

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [file, form] = process.argv.slice(2);
  if (file === undefined || (form !== undefined && form !== "--svg")) {
    console.error("usage: npm run picture -- <timeline.json> [--svg]");
    process.exit(2);
  }
  const target = `${file.replace(/\.json$/, "")}.${form === "--svg" ? "svg" : "html"}`;
  const { parseTimeline, pictureHtml, toSvg } = await load("src/picture/index.ts");
  const timeline = parseTimeline(readFileSync(file, "utf8"));
  writeFileSync(target, form === "--svg" ? toSvg(timeline) : pictureHtml(timeline, await pictureScript()));
  console.log(target);
}
