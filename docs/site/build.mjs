// Builds the site from the docs as they are: `npm run site`. Fails if a link of it leads nowhere.
import { cp, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { readArguments } from "../../tools/arguments.mjs";
import { project } from "../../tools/load.mjs";
import { npmCi } from "../../tools/npm-ci.mjs";
import { playgroundHtml } from "../../tools/playground.mjs";
import { deadLinks } from "./links.mjs";
import { llmsText, readPages } from "./pages.mjs";

const root = join(project, "docs/site");

async function buildSite(base, folder) {
  npmCi("docs/site");
  const { build } = await import("vitepress");
  const pages = readPages();
  await rm(join(root, ".pages"), { recursive: true, force: true });
  await writePages(pages, join(root, ".pages"));
  await build(root, { base, outDir: folder });
  await writePages(pages, folder);
  const manifest = JSON.parse(await readFile(join(project, "package.json"), "utf8"));
  await write(join(folder, "llms.txt"), llmsText(pages, manifest));
  await write(join(folder, "playground", "index.html"), await playgroundHtml());
  const dead = await deadLinks(folder, base);
  if (dead.length > 0) throw new Error(`links that lead nowhere:\n${dead.join("\n")}`);
}

/** The Markdown of all pages, and their images. */
async function writePages(pages, folder) {
  for (const { path, text, images } of pages.values()) {
    await write(join(folder, path), text);
    for (const { file, path: to } of images) await cp(join(project, file), join(folder, to));
  }
}

async function write(file, text) {
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, text);
}

const usage = "npm run site [-- --base /redlock-edge/]";
const { base } = readArguments({ base: { type: "string", default: "/" } }, usage);
await buildSite(base, join(root, "dist"));
console.log("wrote docs/site/dist");
