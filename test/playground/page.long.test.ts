import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { presets } from "../../playground/presets.ts";
import { playgroundHtml } from "../../scripts/playground.mjs";
import { chromiumPath, crossedNames, openBrowser, openPage, overflows } from "../support/browser.ts";

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
      document.querySelectorAll("[data-endpoint] .state"),
      (each) => each.textContent ?? "",
    );
    const held = world.endpoints.map(({ engine }: { engine: { execute(command: string[]): unknown } }) => {
      const value = engine.execute(["GET", "redlock:lock:{invoice-42}"]);
      return value === null ? "" : world.ownerOf(String(value));
    });
    return { said, held };
  });
}

async function faster(page: Page): Promise<void> {
  await page.getByLabel(/^Speed/).fill("200");
}

it("is at most 250 kB in size, gzipped, with the engine", () => {
  expect(gzipSync(html).length).toBeLessThanOrEqual(250_000);
});

describe.skipIf(chromiumPath === undefined)("in a browser", () => {
  it.each([
    [1_280, "light"],
    [390, "dark"],
  ] as const)("plays every scene, %i px, %s", async (width, scheme) => {
    const { page, problems, close } = await openPage(browser, url, { width, scheme });
    for (const preset of presets) {
      await page.getByRole("button", { name: preset.name }).click();
      await faster(page);
      await page.waitForFunction(() => document.querySelector(".ending")?.textContent !== "");
      const result = await page.locator(".ending").textContent();
      expect(result).toBe(
        await page.evaluate(() => {
          const shown = Reflect.get(globalThis, "playground");
          return shown.preset.outcome(shown.stage);
        }),
      );
      expect(await overflows(page)).toBe(false);
      const lanes = await page.evaluate(() => {
        const { world } = Reflect.get(globalThis, "playground").stage;
        return [...world.clients, ...world.endpoints].map(({ name }: { name: string }) => name);
      });
      expect(await crossedNames(page, lanes)).toEqual([]);
    }
    expect(problems).toEqual([]);
    await close();
  });

  it("does what its buttons say", async () => {
    const { page, problems, close } = await openPage(browser, url);
    await page.getByLabel("Clients").selectOption("2");
    await faster(page);
    const client = (name: string) => page.locator(`[data-client="${name}"]`);
    const press = (name: string, label: string) =>
      client(name).getByRole("button", { name: label, exact: true }).click();
    await press("Ann", "Acquire");
    await client("Ann").getByText("holds it for").waitFor();
    const { said, held } = await endpointsOf(page);
    expect(held).toEqual(["Ann", "Ann", "Ann"]);
    expect(said).toEqual(Array(3).fill("invoice-42: Ann"));
    await press("Bob", "Acquire");
    await client("Bob").getByText("waits for it").waitFor();
    await press("Ann", "Release");
    await client("Bob").getByText("holds it for").waitFor();
    await page.locator('[data-endpoint="redis-2"]').getByRole("button", { name: "Kill" }).click();
    await page.locator('[data-endpoint="redis-2"] .state').getByText("killed").waitFor();
    await press("Bob", "Freeze");
    await page.getByText("Bob is frozen").waitFor();
    await press("Bob", "Wake up");
    await page.getByText("Bob runs again").waitFor();
    expect(problems).toEqual([]);
    await close();
  });

  it("sends webhooks: again, five times more, and forged", async () => {
    const { page, problems, close } = await openPage(browser, url);
    await page.getByLabel("What they use").selectOption("webhook");
    await faster(page);
    const press = (label: string) =>
      page.locator('[data-client="fn-1"]').getByRole("button", { name: label, exact: true }).click();
    await press("Send");
    await page.getByText("evt_1 to fn-1: HTTP 200").first().waitFor();
    await press("Five times more");
    await expect
      .poll(() => page.locator(".ledger li").allTextContents())
      .toEqual([
        "fn-1: charge for evt_1",
        "evt_1 to fn-1: HTTP 200",
        ...Array(5).fill("evt_1 to fn-1: HTTP 200, replayed"),
      ]);
    await press("Bad signature");
    await page.getByText("evt_2 to fn-1: HTTP 401").waitFor();
    expect(problems).toEqual([]);
    await close();
  });
});
