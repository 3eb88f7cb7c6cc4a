import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { scenes } from "../../playground/scenes/index.ts";
import { playgroundHtml } from "../../tools/playground.mjs";
import {
  chromiumPath,
  crossedNames,
  faintTexts,
  openBrowser,
  openPage,
  overflows,
  overlappingTexts,
} from "../support/browser.ts";

// The playground in a real browser: what its page says is what its endpoints hold.

let folder: string;
let url: string;
let browser: Browser;
let html: string;

beforeAll(async () => {
  html = await playgroundHtml();
  if (chromiumPath === undefined) return;
  folder = await mkdtemp(join(tmpdir(), "redlock-edge-playground-"));
  await writeFile(join(folder, "playground.html"), html);
  url = pathToFileURL(join(folder, "playground.html")).href;
  browser = await openBrowser();
});
afterAll(async () => {
  await browser?.close();
  if (folder) await rm(folder, { recursive: true, force: true });
});

/** What the page says of its endpoints, and what their engines hold: the owners of the locks. */
function endpointsOf(page: Page): Promise<{ said: string[]; held: string[] }> {
  return page.evaluate(() => {
    const { world } = Reflect.get(globalThis, "playground").stage;
    const said = Array.from(
      document.querySelectorAll("[data-part^=redis] .state"),
      (each) => each.textContent ?? "",
    );
    const held = world.endpoints.map(({ engine }: { engine: { execute(command: string[]): unknown } }) => {
      const value = engine.execute(["GET", "redlock:lock:{invoice-42}"]);
      return value === null ? "" : world.ownerOf(String(value));
    });
    return { said, held };
  });
}

/** The step that is shown, and until when the world has gone. */
const moment = async (page: Page) => [
  await page.locator("[aria-current=step]").textContent(),
  await page.locator("[aria-live=polite]").first().textContent(),
  new URL(page.url()).hash,
];
const drawing = (page: Page) => page.locator("svg.picture").first().innerHTML();
/** The card of a process or an endpoint. */
const part = (page: Page, name: string) => page.locator(`[data-part="${name}"]`);
const standsAt = (page: Page, time: number) => page.getByText(`${time} of `).waitFor();

describe.skipIf(chromiumPath === undefined)("in a browser", () => {
  it.each([
    [1_280, "light"],
    [390, "dark"],
  ] as const)("shows every scene, %i px, %s", async (width, scheme) => {
    // So high that all of it is in view.
    const { page, problems, close } = await openPage(browser, url, { width, height: 3_000, scheme });
    for (const [scene, act] of scenes.flatMap((each) => each.acts.map((_, at) => [each, at] as const))) {
      // It stands still at its end.
      await page.evaluate(
        (to) => {
          location.hash = to;
        },
        `scene=${scene.id}&act=${act + 1}&t=99999`,
      );
      await page.waitForFunction(
        ([id, wanted]) => {
          const { stage } = Reflect.get(globalThis, "playground");
          const hasEnded = document.querySelector(".ending")?.textContent !== "";
          return stage.scene.id === id && stage.act === wanted && hasEnded;
        },
        [scene.id, act] as const,
      );
      const result = await page.locator(".ending").textContent();
      expect(result).toBe(await page.evaluate(() => Reflect.get(globalThis, "playground").stage.outcome()));
      expect(await overflows(page)).toBe(false);
      // All of the picture stays in sight of what can be done on a phone.
      const { height } = (await page.locator("svg.picture").first().boundingBox())!;
      expect(height).toBeLessThan(width < 700 ? 420 : 600);
      const lanes = await page.evaluate(() => {
        const { world } = Reflect.get(globalThis, "playground").stage;
        return [...world.clients, ...world.endpoints].map(({ name }: { name: string }) => name);
      });
      expect(await crossedNames(page, lanes)).toEqual([]);
      expect(await overlappingTexts(page)).toEqual([]);
      const controls = await page.$$eval("button, label:has(input), [type=range]", (all) =>
        all.filter((one) => one.checkVisibility()).map((one) => one.getBoundingClientRect().height),
      );
      // Fingers, on a phone.
      expect(Math.min(...controls)).toBeGreaterThanOrEqual(width < 700 ? 40 : 24);
      expect(await faintTexts(page)).toEqual([]);
    }
    expect(problems).toEqual([]);
    await close();
  });

  it("opens links to a moment, and keeps the address in step with it", async () => {
    const { page, problems, close } = await openPage(browser, `${url}#scene=late-writer&act=2&t=3777`);
    await standsAt(page, 3_777);
    const [shown, said] = await moment(page);
    expect(shown).toMatch(/^3777 ms Ann runs again/);
    expect(shown).toContain(said);
    const linked = await drawing(page);
    await page.keyboard.press("ArrowLeft");
    await page.keyboard.press("ArrowLeft");
    await standsAt(page, 3_167);
    expect((await moment(page))[2]).toBe("#scene=late-writer&act=2&t=3167");
    await page.getByRole("button", { name: "Next" }).press("Enter");
    await standsAt(page, 3_207);
    await page.getByRole("button", { name: "Ann runs again" }).click();
    await standsAt(page, 3_777);
    expect(await moment(page)).toEqual([shown, said, "#scene=late-writer&act=2&t=3777"]);
    expect(await drawing(page)).toBe(linked);
    await page.getByRole("button", { name: "Play", exact: true }).click();
    expect((await moment(page))[2]).toBe("#scene=late-writer&act=2");
    await page.getByText("3906 of 3906 ms").waitFor();
    await page.getByRole("button", { name: "Without a fence" }).click();
    await page.getByRole("button", { name: "writes over Bob's line" }).click();
    await standsAt(page, 4_417);
    expect((await moment(page))[2]).toBe("#scene=late-writer&t=4417");
    // A reader who breaks something leaves the scene, and its captions.
    await page.getByRole("button", { name: "Kill redis-1" }).click();
    await page.getByText("You changed this world").waitFor();
    expect(await page.locator("[aria-current=step]").count()).toBe(0);
    expect(problems).toEqual([]);
    await close();
  });

  it("copies a link to a changed world, which shows it to others as it was", async () => {
    const { page, problems, close } = await openPage(browser, `${url}#scene=late-writer&act=2`);
    await page.getByRole("button", { name: "Pause" }).click();
    await part(page, "Bob").getByRole("button", { name: "Acquire" }).click();
    await page.getByText("You changed this world").waitFor();
    await page.getByRole("button", { name: "Kill redis-3" }).press("Enter");
    await page.getByLabel(/^Latency/).fill("120");
    await page.getByRole("button", { name: "Pause" }).click();
    await page.evaluate(() => {
      navigator.clipboard.writeText = (text) => {
        Object.assign(globalThis, { copied: text });
        return Promise.resolve();
      };
    });
    await page.getByRole("button", { name: "Copy link" }).click();
    await page.getByText("Copied").waitFor();
    const link = await page.evaluate(() => String(Reflect.get(globalThis, "copied")));
    const done = String.raw`\d+\.Bob\.Acquire~\d+\.redis-3\.Kill~\d+\.latency\.120`;
    expect(link).toMatch(new RegExp(`#scene=late-writer&act=2&do=${done}&t=\\d+$`));
    expect(page.url()).toBe(link);
    const other = await openPage(browser, link);
    await other.page.getByText(`${/\d+$/.exec(link)![0]} ms`, { exact: true }).waitFor();
    expect(await drawing(other.page)).toBe(await drawing(page));
    const saved = other.page.waitForEvent("download");
    await other.page.getByRole("button", { name: "Download SVG" }).click();
    const file = readFileSync(await (await saved).path(), "utf8");
    expect(file).toMatch(/^<svg .*>killed: redis-3\n/s);
    expect([...problems, ...other.problems]).toEqual([]);
    await other.close();
    await close();
  });

  it("shows a scene and a note for links to nothing", async () => {
    const hash = "#scene=even-split&t=<script>alert(1)</script>";
    const { page, problems, close } = await openPage(browser, url + hash);
    await page.locator(".notice").getByText("This link names no scene").waitFor();
    expect(await page.evaluate(() => Reflect.get(globalThis, "playground").stage.scene.id)).toBe("twice");
    expect(await page.locator(".notice script").count()).toBe(0);
    expect(problems).toEqual([]);
    await close();
  });

  it("does what its buttons say", async () => {
    const { page, problems, close } = await openPage(browser, `${url}#scene=late-writer&act=2&t=3906`);
    await page.getByText("3906 of 3906 ms").waitFor();
    const client = (name: string) => part(page, name);
    const press = (name: string, label: string) =>
      client(name).getByRole("button", { name: label, exact: true }).click();
    await press("Ann", "Acquire");
    await page.getByText("You changed this world").waitFor();
    await client("Ann").getByText("holds it for").waitFor();
    const { said, held } = await endpointsOf(page);
    expect(held).toEqual(["Ann", "Ann", "Ann"]);
    expect(said).toEqual(Array(3).fill("invoice-42: Ann"));
    await press("Bob", "Acquire");
    await client("Bob").getByText("waits for it").waitFor();
    await press("Ann", "Release");
    await client("Bob").getByText("holds it for").waitFor();
    await page.getByRole("button", { name: "Kill redis-2" }).click();
    await part(page, "redis-2").locator(".state").getByText("killed").waitFor();
    await page.getByRole("button", { name: "Freeze Bob" }).click();
    await client("Bob").getByText("frozen").waitFor();
    await page.getByRole("button", { name: "Wake up Bob" }).click();
    await page.getByRole("button", { name: "Freeze Bob" }).waitFor();
    expect(problems).toEqual([]);
    await close();
  });
});
