// Draws the screenshots of docs/images with Debian's Chromium: `npm run screenshots [-- --only playground]`. Each page has
// an entry below: it starts what the page needs, brings it into the state to be shown, and ends it.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";
import { readArguments, refuse } from "./arguments.mjs";
import { load, project } from "./load.mjs";
import { playgroundHtml } from "./playground.mjs";

/**
 * By name of the image: shows the page in the given tab, and resolves with what ends it again.
 *
 * @type {Record<string, (page: import("playwright-core").Page) => Promise<() => Promise<unknown>>>}
 */
const pages = {
  async playground(page) {
    const folder = await mkdtemp(join(tmpdir(), "redlock-edge-screenshot-"));
    await writeFile(join(folder, "page.html"), await playgroundHtml());
    await page.goto(pathToFileURL(join(folder, "page.html")).href);
    await page.getByLabel(/^Speed/).fill("200");
    await page.waitForFunction(() => document.querySelector(".ending")?.textContent !== "");
    await page.getByRole("button", { name: "Pause", exact: true }).click();
    return () => rm(folder, { recursive: true });
  },
};

const usage = `npm run screenshots [-- --only ${Object.keys(pages).join("|")}]`;
const { only } = readArguments({ only: { type: "string" } }, usage);
if (only && !Object.hasOwn(pages, only)) refuse(`there is no page ${only}`, usage);
const { chromiumPath } = await load("test/support/browser.ts");
if (!chromiumPath) refuse("chromium is missing: apt-get install chromium", usage);

const browser = await chromium.launch({ executablePath: chromiumPath, args: ["--no-sandbox"] });
try {
  for (const name of only ? [only] : Object.keys(pages)) {
    const page = await browser.newPage({ viewport: { width: 1_280, height: 1_060 }, colorScheme: "light" });
    const end = await pages[name](page);
    await page.evaluate(() => scrollTo(0, 0));
    const path = join(project, "docs", "images", `${name}.png`);
    await page.screenshot({ path });
    await page.close();
    await end();
    console.log(`wrote docs/images/${name}.png`);
  }
} finally {
  await browser.close();
}
process.exit(0);
