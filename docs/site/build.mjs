// Builds the site from the docs as they are: `npm run site`. Fails if a link of it leads nowhere.
import { cp, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { readArguments } from "../../tools/arguments.mjs";
import { project } from "../../tools/load.mjs";
import { npmCi } from "../../tools/npm-ci.mjs";
import { playgroundHtml } from "../../tools/playground.mjs";
import { writeApi } from "./api.mjs";
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
  await writeApi(join(folder, "api"), { Documentation: base });
  await adaptApi(join(folder, "api"), pages, base);
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

/** The reference leads to the pages of the docs that docstrings name, and asks for no icon, as the other pages. */
async function adaptApi(folder, pages, base) {
  const names = await readdir(folder, { recursive: true });
  for (const name of names.filter((each) => each.endsWith(".html"))) {
    const html = await readFile(join(folder, name), "utf8");
    const linked = html.replace(/<code>(docs\/[\w/-]+\.md)<\/code>/g, (found, file) => {
      const page = pages.get(file);
      return page ? `<a href="${base}${page.path.replace(/md$/, "html")}">${page.title}</a>` : found;
    });
    await write(join(folder, name), linked.replace("<head>", '<head><link rel="icon" href="data:,">'));
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
