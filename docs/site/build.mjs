// Builds the site from the docs as they are: `npm run site`. Fails if a link of it leads nowhere.
import { cp, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import process from "node:process";
import { readArguments } from "../../tools/arguments.mjs";
import { project } from "../../tools/load.mjs";
import { npmCi } from "../../tools/npm-ci.mjs";
import { writeApi } from "./api.mjs";
import { deadLinks } from "./links.mjs";
import { llmsText, readPages } from "./pages.mjs";

const root = join(project, "docs/site");

async function buildSite({ base, origin }, folder) {
  npmCi("docs/site");
  // The configuration reads them.
  process.env.SITE_BASE = base;
  if (origin !== undefined) process.env.SITE_ORIGIN = origin;
  const { build } = await import("vitepress");
  const pages = readPages();
  await rm(join(root, ".pages"), { recursive: true, force: true });
  await writePages(pages, join(root, ".pages"));
  await writeApi(join(root, ".pages/api"));
  await linkGuides(join(root, ".pages/api"), pages);
  await build(root, { base, outDir: folder });
  await writePages(pages, folder);
  await cp(join(root, "favicon.svg"), join(folder, "favicon.svg"));
  await cp(join(project, "docs/images/twice.png"), join(folder, "images/twice.png"));
  await cp(join(root, ".pages/api"), join(folder, "api"), { recursive: true });
  const manifest = JSON.parse(await readFile(join(project, "package.json"), "utf8"));
  await write(join(folder, "llms.txt"), llmsText(pages, manifest));
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

/** The reference leads to the pages of the docs that docstrings name. */
async function linkGuides(folder, pages) {
  for (const name of await readdir(folder)) {
    const text = await readFile(join(folder, name), "utf8");
    const linked = text.replace(/`(docs\/[\w/-]+\.md)`/g, (found, file) => {
      const page = pages.get(file);
      return page ? `[${page.title}](../${page.path})` : found;
    });
    await write(join(folder, name), linked);
  }
}

async function write(file, text) {
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, text);
}

const usage = "npm run site [-- --base /redlock-edge/] [--origin https://you.github.io]";
const options = readArguments({ base: { type: "string", default: "/" }, origin: { type: "string" } }, usage);
await buildSite(options, join(root, "dist"));
console.log("wrote docs/site/dist");
