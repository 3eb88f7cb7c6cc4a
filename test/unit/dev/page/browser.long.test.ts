import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { devPageScript } from "../../../../scripts/dev-page.mjs";
import { startEndpoints } from "../../../../src/dev/index.ts";
import { openPage as openDevPage } from "../../../../src/dev/page/server.ts";
import { Idempotency } from "../../../../src/idempotency/index.ts";
import { endpointsFromEnv, inspect, Redlock } from "../../../../src/index.ts";
import { chromiumPath, openBrowser, openPage, overflows } from "../../../support/browser.ts";
import { eachEngine } from "../../../support/each-engine.ts";
import { engines } from "../../../support/redis-servers.ts";

// The page of `redlock-edge dev` in a real browser, with the real library at the endpoints that it shows.

let browser: Browser;
beforeAll(async () => {
  if (chromiumPath !== undefined) browser = await openBrowser();
});
afterAll(() => browser?.close());

async function start(engine: "redis" | "embedded") {
  const local = await startEndpoints({ engine });
  const dev = await openDevPage(local, { script: devPageScript, interval: 50 });
  const redlock = new Redlock({ endpoints: endpointsFromEnv(local.env()), timeout: 700 });
  const close = async () => {
    await dev.close();
    await local.close();
  };
  return { local, dev, redlock, close };
}

/** The cells of the row of a resource, by their labels; undefined without such a row. */
const rowOf = (page: Page, name: string) =>
  page.evaluate((wanted) => {
    const rows = [...document.querySelectorAll("tbody tr")];
    const row = rows.find((each) => each.querySelector("td.name")?.textContent === wanted);
    const cells = [...(row?.querySelectorAll("td") ?? [])];
    return row && Object.fromEntries(cells.map((cell) => [cell.dataset.label, cell.textContent]));
  }, name);

const card = (page: Page, name: string) => page.getByRole("article", { name });
const text = (page: Page) => page.locator("body").innerText();

eachEngine(engines, describe.skipIf(chromiumPath === undefined))("the page of endpoints on %s", (engine) => {
  test("shows a lock, a run and a fault as they are, at every width and in both schemes", async () => {
    const { local, dev, redlock, close } = await start(engine);
    const { page, problems, close: leave } = await openPage(browser, dev.url);
    await expect.poll(() => page.locator("#summary").textContent()).toContain("3 of 3 endpoints up");
    expect(page.url()).not.toContain("token");
    expect(await text(page)).toContain("Nothing is held");

    const lock = await redlock.acquire("invoice:42", { ttl: 60_000, fencing: true });
    await expect.poll(async () => (await rowOf(page, "invoice:42"))?.endpoints).toBe(" 3 of 3");
    const { holder, fence } = await inspect(redlock, "invoice:42");
    const row = await rowOf(page, "invoice:42");
    expect(row).toMatchObject({ fence: `${fence}`, holder: expect.stringContaining(holder!) });
    const values = await local.endpoints[0]!.execute(["GET", "redlock:lock:{invoice:42}"]);
    expect(await page.content()).not.toContain(String(values));
    // The bar has room for it when it is long enough.
    const bars = () => page.locator(".picture .bar-text").allTextContents();
    await expect.poll(async () => (await bars()).join(" ")).toContain(`${lock.fence}`);

    const idempotency = new Idempotency(redlock);
    await idempotency.run("evt", () => "done");
    await expect.poll(() => text(page)).toMatch(/\bcomplete\b/);
    const counts = () => local.endpoints.map(({ log }) => `${log.requests} in all`);
    await expect
      .poll(() => page.locator(".counts span:first-child .soft").allTextContents())
      .toEqual(counts());

    for (const width of [1_280, 390]) {
      for (const colorScheme of ["light", "dark"] as const) {
        await page.setViewportSize({ width, height: 800 });
        await page.emulateMedia({ colorScheme });
        expect(await overflows(page)).toBe(false);
        const ground = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
        expect(ground).toMatch(colorScheme === "dark" ? /rgb\(13, / : /rgb\(244, /);
        expect(await rowOf(page, "invoice:42")).toMatchObject({ fence: `${fence}` });
      }
    }
    await page.setViewportSize({ width: 1_280, height: 800 });

    // Nothing is lost while one endpoint does not answer.
    const lose = card(page, "endpoint-3").getByLabel("lose replies");
    await lose.click();
    await expect.poll(() => local.endpoints[2]!.faults.list()).toEqual([{ fault: "drop-reply" }]);
    const second = await redlock.acquire("report", { ttl: 60_000 });
    await expect.poll(() => text(page)).toContain("reply lost");
    await expect.poll(async () => (await rowOf(page, "report"))?.endpoints).toBe(" 3 of 3");
    await lose.click();
    await expect.poll(() => local.endpoints[2]!.faults.list()).toEqual([]);
    await expect.poll(() => text(page)).toContain("endpoint-3 no longer has the fault drop-reply");
    await second.release();
    await expect.poll(() => rowOf(page, "report")).toBeUndefined();

    await card(page, "endpoint-1").getByRole("button", { name: "Stop" }).click();
    await expect.poll(() => page.locator("#summary").textContent()).toContain("2 of 3 endpoints up");
    expect(local.endpoints[0]!.running).toBe(false);
    await expect.poll(async () => (await rowOf(page, "invoice:42"))?.endpoints).toBe(" 2 of 3");
    await card(page, "endpoint-2").getByRole("button", { name: "Stop" }).click();
    await expect.poll(() => page.locator("#summary").textContent()).toContain("every acquire fails");
    await card(page, "endpoint-1").getByRole("button", { name: "Start empty" }).click();
    await card(page, "endpoint-2").getByRole("button", { name: "Start", exact: true }).click();
    await expect.poll(async () => (await rowOf(page, "invoice:42"))?.endpoints).toBe(" 2 of 3");
    await expect.poll(() => page.locator("#summary").textContent()).toContain("3 of 3 endpoints up");
    await lock.release();
    await expect.poll(() => rowOf(page, "invoice:42")).toBeUndefined();
    expect(problems).toEqual([]);

    await leave();
    await close();
  });
});

describe.skipIf(chromiumPath === undefined)("the page without a token", () => {
  test("asks for it, says where it is, and refuses a wrong one", async () => {
    const { local, dev, close } = await start("embedded");
    const {
      page,
      problems,
      close: leave,
    } = await openPage(browser, new URL("/", dev.url).href, { width: 390 });
    await expect.poll(() => text(page)).toContain("UPSTASH_REDIS_REST_TOKEN_1");
    expect(await overflows(page)).toBe(false);
    await page.getByLabel("Token").fill("wrong");
    await page.getByRole("button", { name: "Open" }).click();
    await expect.poll(() => page.locator("#summary").textContent()).toContain("not the one");
    await page.getByLabel("Token").fill(local.endpoints[0]!.token);
    await page.keyboard.press("Enter");
    await expect.poll(() => page.locator("#summary").textContent()).toContain("3 of 3 endpoints up");
    await page.reload();
    await expect.poll(() => page.locator("#summary").textContent()).toContain("3 of 3 endpoints up");
    // The browser itself reports the answer 401.
    expect(problems).toEqual([expect.stringContaining("401")]);
    await close();
    await expect.poll(() => page.locator("#summary").textContent()).toMatch(/have ended|No connection/);
    await leave();
  });
});
