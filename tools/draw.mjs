// `node tools/draw.mjs timeline.json` draws a timeline (playground/picture/timeline.ts) as timeline.svg.
import { readFileSync, writeFileSync } from "node:fs";
import process from "node:process";
import { load } from "./load.mjs";

const [file] = process.argv.slice(2);
if (file === undefined) {
  console.error("usage: node tools/draw.mjs <timeline.json>");
  process.exit(2);
}
const target = `${file.replace(/\.json$/, "")}.svg`;
const { toSvg } = await load("playground/picture/index.ts");
writeFileSync(target, toSvg([JSON.parse(readFileSync(file, "utf8"))]));
console.log(target);
