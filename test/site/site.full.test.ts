import { execFile } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import type { Server } from "node:http";
import { join } from "node:path";
import process from "node:process";
import { promisify } from "node:util";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { chromiumPath, faintTexts, openBrowser, openPage, overflows } from "../support/browser.ts";
import { serveFolder } from "./served.ts";

// The site as a reader gets it, under the path that GitHub Pages gives it. Its build fails for a dead link.

const base = "/redlock-edge/";
const origin = "https://docs.example";
const folder = "docs/site/dist";
let pages: string[];

beforeAll(async () => {
  await promisify(execFile)(process.execPath, ["docs/site/build.mjs", "--base", base, "--origin", origin]);
  const names = await readdir(folder, { recursive: true });
  pages = names.filter((name) => name.endsWith(".html") && name !== "404.html");
}, 400_000);

const textOf = (name: string) => readFile(join(folder, name), "utf8");

it("has a title, a description, one h1 and texts for images on every page", async () => {
  expect(pages.length).toBeGreaterThan(60);
  const titles = new Set<string>();
  for (const name of pages) {
    const html = await textOf(name);
    const title = /<title>(.+?)<\/title>/.exec(html)?.[1];
    expect(title, name).toMatch(/redlock-edge/);
    titles.add(title!);
    const description = /<meta name="description" content="([^"]*)">/.exec(html)?.[1];
    expect(description?.length, `${name}: ${description}`).toBeGreaterThan(20);
    expect(description?.length, `${name}: ${description}`).toBeLessThan(260);
    expect(html.match(/<h1\b/g), name).toHaveLength(1);
    expect(html.includes("<pre"), name).toBe(html.includes('<pre class="shiki'));
    const images = html.match(/<img\b[^>]*>/g) ?? [];
    expect(
      images.filter((image) => !/ alt="[^"]{10,}"/.test(image)),
      name,
    ).toEqual([]);
  }
  expect(titles.size).toBe(pages.length);
});

it("shows a title, a text and a picture where somebody links to a page, and an icon", async () => {
  for (const name of pages) {
    const html = await textOf(name);
    expect(html, name).toContain(`<link rel="icon" type="image/svg+xml" href="${base}favicon.svg">`);
    const address = origin + base + name.replace(/(^|\/)index\.html$/, "$1");
    expect(html, name).toContain(`<meta property="og:url" content="${address}">`);
    expect(html, name).toMatch(/<meta property="og:title" content="[^"]+">/);
    expect(html, name).toMatch(/<meta property="og:description" content="[^"]+">/);
    const picture = html.split(`<meta property="og:image" content="${origin}${base}`)[1]?.split('"')[0];
    expect((await readFile(join(folder, picture!))).length, name).toBeGreaterThan(10_000);
  }
  const addresses = (await textOf("sitemap.xml")).match(/<loc>[^<]+/g)!;
  expect(addresses).toHaveLength(pages.length);
  for (const each of addresses) expect(each.startsWith(`<loc>${origin}${base}`), each).toBe(true);
});

it("has a page for each module, with a sentence about it", async () => {
  const modules = (await textOf("api/index.md")).match(/^\| \[`.*$/gm)!;
  const { exports } = JSON.parse(await readFile("package.json", "utf8"));
  for (const path of Object.keys(exports).filter((each) => !each.endsWith(".json")))
    expect(modules.join("\n")).toContain(`\`redlock-edge${path.slice(1)}\``);
  for (const row of modules) expect(row).toMatch(/\) \| [A-Z].+\. \|$/);
  const pagesOfApi = pages.filter((name) => name.startsWith("api/"));
  expect(pagesOfApi).toHaveLength(modules.length + 1);
});

it("has every page as Markdown, and an index of the docs for language models", async () => {
  const index = await textOf("llms.txt");
  expect(index).toMatch(/^# redlock-edge\n\n> .+\n\n[^#]+\n## Start\n\n- \[Getting started\]/);
  for (const name of pages) {
    const path = name.replace(/html$/, "md");
    expect(await textOf(path), name).toMatch(/^# /);
    if (!/^(worker|api)\//.test(path)) expect(index).toContain(`](${path})`);
  }
});

it("shows an example's programs on its page", async () => {
  const agent = await textOf("examples/agent/index.md");
  expect(agent).toContain("](#agentts)");
  expect(agent).toContain(await readFile("examples/agent/agent.ts", "utf8").then((text) => text.trim()));
  expect(await textOf("examples/agent/index.html")).toContain('id="agentts"');
});

describe.skipIf(chromiumPath === undefined)("in a browser", () => {
  let browser: Browser;
  let server: Server;
  let url: string;

  beforeAll(async () => {
    browser = await openBrowser();
    ({ server, url } = await serveFolder(folder, base));
  });
  afterAll(async () => {
    await browser.close();
    server.close();
  });

  it("fits 390 px and requests nothing from elsewhere, on every page of the docs", async () => {
    // Without scripts, which change no width, it takes half the time.
    const viewport = { width: 390, height: 800 };
    const context = await browser.newContext({ viewport, javaScriptEnabled: false });
    const page = await context.newPage();
    const elsewhere: string[] = [];
    page.on("request", (request) => {
      if (!request.url().startsWith(url)) elsewhere.push(`${page.url()}: ${request.url()}`);
    });
    // Those of files have one form.
    for (const name of pages.filter((each) => !/^(examples|worker)\/.*\.\w+\.html$/.test(each))) {
      await page.goto(url + name);
      expect(await overflows(page), name).toBe(false);
    }
    expect(elsewhere.filter((request) => !request.includes(": data:"))).toEqual([]);
    await context.close();
  });

  it.each(["light", "dark"] as const)("has readable colours and no errors: %s", async (scheme) => {
    // What is not in view is not looked at.
    const { page, problems, close } = await openPage(browser, url, { scheme, height: 16_000 });
    const chosen = ["", "choosing", "examples/d1-fence/index", "api/redlock-edge.sync"];
    for (const name of chosen) {
      await page.goto(name === "" ? url : `${url}${name}.html`);
      expect(await faintTexts(page), name).toEqual([]);
    }
    expect(problems).toEqual([]);
    await close();
  });

  it("is used without a mouse: skip link, navigation, search", async () => {
    const { page, problems, close } = await openPage(browser, url);
    await page.waitForFunction(() => document.querySelector(".VPNavBarSearch button"));
    const focused = () =>
      page.evaluate(() => {
        const element = document.activeElement!;
        const style = getComputedStyle(element);
        const { width, height } = element.getBoundingClientRect();
        return {
          text: element.textContent!.trim(),
          isSeen: width > 1 && height > 1 && style.outlineStyle !== "none" && style.outlineWidth !== "0px",
        };
      });
    const reached: string[] = [];
    do {
      await page.keyboard.press("Tab");
      const { text, isSeen } = await focused();
      expect(isSeen, text).toBe(true);
      reached.push(text);
    } while (reached.at(-1) !== "Examples" && reached.length < 20);
    expect(reached).toEqual(expect.arrayContaining(["Skip to content", "Getting started"]));
    expect(reached.at(-1)).toBe("Examples");
    await page.keyboard.press("Control+k");
    await page.locator("#localsearch-input").pressSequentially("fencing");
    await page.locator(".VPLocalSearchBox .result").first().waitFor();
    expect(await faintTexts(page, ".VPLocalSearchBox")).toEqual([]);
    await page.keyboard.press("Enter");
    await page.waitForURL(`${url}fencing.html**`);
    await page.getByRole("heading", { level: 1, name: "Fencing tokens" }).waitFor();
    expect(problems).toEqual([]);
    await close();
  });
});
