import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { toSvg } from "../../../playground/picture/svg.ts";
import { bundle } from "../../../tools/bundle.mjs";
import { chromiumPath, openBrowser, openPage, overflows, overlappingTexts } from "../../support/browser.ts";
import { sampleTimeline } from "../../support/timeline.ts";

// The page of a timeline in a real browser.

let folder: string;
let browser: Browser;
const file = (name: string) => pathToFileURL(join(folder, name)).href;

beforeAll(async () => {
  if (chromiumPath === undefined) return;
  folder = await mkdtemp(join(tmpdir(), "redlock-edge-picture-"));
  const script = await bundle("test/playground/picture/live-page.ts");
  const page = `<!doctype html><meta name="viewport" content="width=device-width"><div id="picture"></div><script>${script}</script>`;
  await writeFile(join(folder, "page.html"), page);
  await writeFile(join(folder, "picture.svg"), toSvg(sampleTimeline));
  browser = await openBrowser();
});
afterAll(async () => {
  await browser?.close();
  if (folder) await rm(folder, { recursive: true, force: true });
});

/** A page with the sample. */
async function openSample() {
  const opened = await openPage(browser, file("page.html"));
  await opened.page.evaluate((timeline) => {
    window.mountPicture(document.querySelector("#picture")!, timeline);
  }, sampleTimeline);
  return opened;
}

/** The numbers of the time axis. */
const ticks = (page: Page) =>
  page.$$eval(".picture text.soft[text-anchor=middle]", (all) => all.map(({ textContent }) => textContent));
const names = (page: Page) => page.locator(".picture .name").allTextContents();

describe.skipIf(chromiumPath === undefined)("the page of a timeline", () => {
  it("is readable at both widths, light and dark, and loads nothing", async () => {
    const { page, problems, close } = await openSample();
    for (const width of [1_280, 390]) {
      for (const colorScheme of ["light", "dark"] as const) {
        await page.setViewportSize({ width, height: 800 });
        await page.emulateMedia({ colorScheme });
        // Without the margins of the page.
        await expect.poll(() => page.locator(".picture").getAttribute("width")).toBe(`${width - 16}`);
        expect(await names(page)).toEqual(["redis-1", "redis-2", "redis-3", "database"]);
        expect(await overflows(page)).toBe(false);
        expect(await overlappingTexts(page)).toEqual([]);
        const [paper, ink] = await page.$eval(".picture", (svg) => [
          getComputedStyle(svg).backgroundColor,
          getComputedStyle(svg.querySelector(".name")!).fill,
        ]);
        expect(colorScheme === "dark" ? ink : paper).toMatch(/rgb\(2[345]\d/);
      }
    }
    expect(problems).toEqual([]);
    await close();
  });

  it("zooms and moves by buttons, keys, wheel and drag", async () => {
    const { page, problems, close } = await openSample();
    const whole = await ticks(page);
    const changes = async (action: () => Promise<void>) => {
      const before = JSON.stringify(await ticks(page));
      await action();
      await expect.poll(async () => JSON.stringify(await ticks(page))).not.toBe(before);
    };
    await changes(() => page.getByRole("button", { name: "Zoom in" }).click());
    await changes(() => page.getByRole("button", { name: "Later" }).click());
    await page.locator(".picture-stage").focus();
    await changes(() => page.keyboard.press("+"));
    await changes(() => page.keyboard.press("+"));
    await changes(() => page.keyboard.press("ArrowLeft"));
    const box = (await page.locator(".picture-stage").boundingBox())!;
    await page.mouse.move(box.x + 600, box.y + 100);
    await changes(async () => {
      await page.mouse.down();
      await page.mouse.move(box.x + 800, box.y + 100, { steps: 3 });
      await page.mouse.up();
    });
    await changes(async () => {
      await page.keyboard.down("Control");
      await page.mouse.wheel(0, -200);
      await page.keyboard.up("Control");
    });
    await page.keyboard.press("0");
    await expect.poll(() => ticks(page)).toEqual(whole);
    expect(problems).toEqual([]);
    await close();
  });

  it("says what the pointer is on, and steps through all by keyboard", async () => {
    const { page, problems, close } = await openSample();
    const card = page.locator(".picture-card");
    await page
      .locator(".picture text", { hasText: /^B ·.*fence 8/ })
      .first()
      .hover();
    await expect.poll(() => card.textContent()).toContain("orders/17 on redis-1");
    await page.mouse.move(2, 2);
    await expect.poll(() => card.isVisible()).toBe(false);
    await page.locator(".picture-stage").focus();
    await page.keyboard.press("n");
    await expect.poll(() => card.textContent()).toContain("A: acquire granted");
    await page.keyboard.press("n");
    await expect.poll(() => card.textContent()).toContain("acquire: A → redis-1");
    await page.keyboard.press("p");
    await expect.poll(() => card.textContent()).toContain("votes: redis-1: granted");
    await page.keyboard.press("Escape");
    expect(await card.isVisible()).toBe(false);
    expect(problems).toEqual([]);
    await close();
  });

  it("the SVG file is well-formed, and loads nothing", async () => {
    const { page, problems, close } = await openPage(browser, file("picture.svg"), { scheme: "dark" });
    expect(await page.evaluate(() => document.documentElement.nodeName)).toBe("svg");
    expect(await page.locator("parsererror").count()).toBe(0);
    expect(await overlappingTexts(page)).toEqual([]);
    expect(problems).toEqual([]);
    await close();
  });

  it("a live picture goes along, draws once for many events, and leaves nothing behind", async () => {
    const { page, problems, close } = await openPage(browser, file("page.html"));
    const drawn = await page.evaluate(async () => {
      const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
      const picture = window.mountPicture(
        document.querySelector("#picture")!,
        { version: 1, title: "live", clients: ["A"], endpoints: ["x"], events: [] },
        { latest: 100 },
      );
      await frame();
      await frame();
      let drawings = 0;
      const observer = new MutationObserver(() => {
        drawings += 1;
      });
      observer.observe(document.querySelector("svg.picture")!, { childList: true });
      for (let time = 0; time <= 1_000; time += 1) {
        picture.add([{ time, phase: "sent", client: "A", endpoint: "x", request: `${time}`, key: "k" }]);
      }
      picture.add([], 1_050);
      await frame();
      await frame();
      const marks = [...document.querySelectorAll(".picture text")].map(({ textContent }) => textContent);
      const lines = document.querySelectorAll("svg.picture .flight").length;
      picture.close();
      return { drawings, marks, lines, left: document.querySelector("#picture")!.childElementCount };
    });
    expect(drawn.drawings).toBe(1);
    expect(drawn.marks).toContain("1000");
    expect(drawn.marks).not.toContain("900");
    // The latest 100 ms have 51 requests; one more is a sign of the legend.
    expect(drawn.lines).toBeGreaterThan(45);
    expect(drawn.lines).toBeLessThan(60);
    expect(drawn.left).toBe(0);
    expect(problems).toEqual([]);
    await close();
  });
});
