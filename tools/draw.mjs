// `node tools/draw.mjs timeline.json` draws a timeline (playground/picture/timeline.ts): it writes timeline.html beside it;
// with --svg, timeline.svg.
import { readFileSync, writeFileSync } from "node:fs";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { bundle } from "./bundle.mjs";
import { load } from "./load.mjs";

/** The script of the pages that pictureHtml() makes. */
export const pictureScript = () => bundle("playground/picture/browser.ts", { minify: true });

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [file, form] = process.argv.slice(2);
  if (file === undefined || (form !== undefined && form !== "--svg")) {
    console.error("usage: node tools/draw.mjs <timeline.json> [--svg]");
    process.exit(2);
  }
  const target = `${file.replace(/\.json$/, "")}.${form === "--svg" ? "svg" : "html"}`;
  const { parseTimeline, pictureHtml, toSvg } = await load("playground/picture/index.ts");
  const timeline = parseTimeline(readFileSync(file, "utf8"));
  writeFileSync(target, form === "--svg" ? toSvg(timeline) : pictureHtml(timeline, await pictureScript()));
  console.log(target);
}
