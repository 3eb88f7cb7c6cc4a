import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Idempotency } from "../../../src/idempotency/index.ts";
import { endpointsFromEnv, Redlock } from "../../../src/index.ts";
import { inspect } from "../../../src/inspect/index.ts";
import { patient } from "../../../test/support/beyond-tests.ts";
import { chromiumPath, openBrowser, openPage, overflows } from "../../../test/support/browser.ts";
import { devPageScript } from "../../../tools/bundle.mjs";
import { start } from "../../src/index.ts";
import { openPage as openDevPage } from "../../src/page/server.ts";

// The page of `redis-rest-local` in a real browser, with the real library at the endpoints that it shows.

let browser: Browser;
beforeAll(async () => {
  if (chromiumPath !== undefined) browser = await openBrowser();
});
afterAll(() => browser?.close());

/** The cells of the row of a resource that is held, by their labels; undefined without such a row. */
const rowOf = (page: Page, name: string) =>
  page.evaluate((wanted) => {
    const rows = [...document.querySelectorAll("tbody tr")];
    const row = rows.find((each) => each.querySelector("td.name")?.textContent === wanted);
    const cells = [...(row?.querySelectorAll("td") ?? [])];
    return row && Object.fromEntries(cells.map((cell) => [cell.dataset.label, cell.textContent]));
  }, name);

describe.skipIf(chromiumPath === undefined)("the page of endpoints", () => {
  test("shows a lock, a run and faults, finds one of many locks at every width, and asks for its token", async () => {
    const local = await start({ engine: "embedded" });
    const dev = await openDevPage(local, { script: devPageScript });
    const redlock = new Redlock({ ...patient, endpoints: endpointsFromEnv(local.env()) });
    const { page, problems, close: leave } = await openPage(browser, dev.url);
    const summary = () => page.locator("#summary").textContent();
    const text = () => page.locator("body").innerText();
    await expect.poll(summary).toContain("3 of 3 endpoints up");
    expect(page.url()).not.toContain("token");
    await page.reload();
    await expect.poll(summary).toContain("3 of 3 endpoints up");
    expect(await text()).toContain("Nothing is held");

    const lock = await redlock.acquire("report", { fencing: true, note: "<b>nightly</b>" });
    const name = 'report "<b>nightly</b>"';
    await expect.poll(async () => (await rowOf(page, name))?.endpoints).toBe(" 3 of 3");
    const { holder, fence } = await inspect(redlock, "report");
    const row = { fence: `${fence}`, holder: expect.stringContaining(holder!) };
    expect(await rowOf(page, name)).toMatchObject(row);
    const value = await local.endpoints[0].execute(["GET", "redlock:lock:{report}"]);
    expect(await page.content()).not.toContain(String(value).split(" ")[0]);
    await new Idempotency(redlock).run("evt", () => "done");
    await expect.poll(text).toMatch(/\bexecuted\b/);

    const card = (number: number) => page.getByRole("article", { name: `endpoint-${number}` });
    const lose = card(3).getByLabel("lose replies");
    await lose.click();
    await expect.poll(() => local.endpoints[2]!.faults.list()).toEqual([{ fault: "drop-reply" }]);
    await redlock.tryAcquire("another");
    await expect.poll(text).toContain("reply lost");
    await lose.click();
    await expect.poll(() => local.endpoints[2]!.faults.list()).toEqual([]);
    await card(1).getByRole("button", { name: "Stop" }).click();
    await expect.poll(async () => (await rowOf(page, name))?.endpoints).toBe(" 2 of 3");
    await card(2).getByRole("button", { name: "Stop" }).click();
    await expect.poll(summary).toContain("every acquire fails");
    await card(1).getByRole("button", { name: "Start empty" }).click();
    await card(2).getByRole("button", { name: "Start", exact: true }).click();
    await expect.poll(summary).toContain("3 of 3 endpoints up");
    await expect.poll(async () => (await rowOf(page, name))?.endpoints).toBe(" 2 of 3");

    const long = `orders/${"a-long-name-".repeat(20)}`;
    for (const resource of [...Array(60).keys()].map((index) => `job:${index}`))
      await redlock.acquire(resource);
    await redlock.acquire(long);
    const held = page.locator("section", { hasText: "Held now" });
    await expect.poll(() => held.locator("h2").innerText()).toMatch(/63, the first 50 are shown/);
    for (const width of [1_280, 390]) {
      for (const colorScheme of ["light", "dark"] as const) {
        await page.setViewportSize({ width, height: 800 });
        await page.emulateMedia({ colorScheme });
        expect(await overflows(page)).toBe(false);
        const ground = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
        expect(ground).toMatch(colorScheme === "dark" ? /rgb\(13, / : /rgb\(244, /);
      }
    }
    await page.getByLabel("Search").fill("job:3 node");
    await expect.poll(() => held.locator("h2").innerText()).toContain("11 of 63 match");
    await lock.release();
    await page.getByLabel("Search").fill("report");
    await expect.poll(() => rowOf(page, name)).toBeUndefined();
    expect(problems).toEqual([]);

    // A tab that was not given the token, and one that was given another.
    const other = await openPage(browser, new URL("/", dev.url).href, { width: 390 });
    const said = () => other.page.locator("#summary").textContent();
    await expect.poll(said).toMatch(/needs a token.*the address that redis-rest-local has printed/);
    await other.page.goto(`${dev.url}x`);
    await expect.poll(said).toContain("not that of these endpoints");
    await other.close();
    await dev.close();
    await expect.poll(summary).toContain("No connection");
    await local.close();
    await leave();
  });
});
