import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Idempotency } from "../../../src/idempotency/index.ts";
import { endpointsFromEnv, Redlock } from "../../../src/index.ts";
import { inspect } from "../../../src/inspect/index.ts";
import { patient } from "../../../test/support/beyond-tests.ts";
import { chromiumPath, openBrowser, openPage, overflows } from "../../../test/support/browser.ts";
import { ownTime } from "../../../test/support/own-time.ts";
import { engines } from "../../../test/support/redis-servers.ts";
import { devPageScript } from "../../../tools/bundle.mjs";
import { start } from "../../src/index.ts";
import { openPage as openDevPage } from "../../src/page/server.ts";

// The page of `redis-rest-local` in a real browser, with the real library at the endpoints that it shows.

let browser: Browser;
beforeAll(async () => {
  if (chromiumPath !== undefined) browser = await openBrowser();
});
afterAll(() => browser?.close());

async function open(engine: "redis" | "embedded") {
  const local = await start({ engine });
  const dev = await openDevPage(local, { script: devPageScript });
  const redlock = new Redlock({ ...patient, endpoints: endpointsFromEnv(local.env()) });
  const close = async () => {
    await dev.close();
    await local.close();
  };
  return { local, dev, redlock, close };
}

/** The cells of the row of a resource that is held, by their labels; undefined without such a row. */
const rowOf = (page: Page, name: string) =>
  page.evaluate((wanted) => {
    const section = [...document.querySelectorAll("section")].find((each) =>
      each.innerText.startsWith("Held now"),
    );
    const rows = [...(section?.querySelectorAll("tbody tr") ?? [])];
    const row = rows.find((each) => each.querySelector("td.name")?.textContent === wanted);
    const cells = [...(row?.querySelectorAll("td") ?? [])];
    return row && Object.fromEntries(cells.map((cell) => [cell.dataset.label, cell.textContent]));
  }, name);

const card = (page: Page, name: string) => page.getByRole("article", { name });
const text = (page: Page) => page.locator("body").innerText();

describe.skipIf(chromiumPath === undefined).each(engines)("the page of endpoints on %s", (engine) => {
  test("shows a lock, a run and a fault as they are, at every width and in both schemes", async () => {
    const { local, dev, redlock, close } = await open(engine);
    const { page, problems, close: leave } = await openPage(browser, dev.url);
    await expect.poll(() => page.locator("#summary").textContent()).toContain("3 of 3 endpoints up");
    expect(page.url()).not.toContain("token");
    expect(await text(page)).toContain("Nothing is held");

    const lock = await redlock.acquire("invoice:42", { fencing: true });
    await expect.poll(async () => (await rowOf(page, "invoice:42"))?.endpoints).toBe(" 3 of 3");
    const { holder, fence } = await inspect(redlock, "invoice:42");
    const row = await rowOf(page, "invoice:42");
    expect(row).toMatchObject({ fence: `${fence}`, holder: expect.stringContaining(holder!) });
    const values = await local.endpoints[0]!.execute(["GET", "redlock:lock:{invoice:42}"]);
    expect(await page.content()).not.toContain(String(values));

    const idempotency = new Idempotency(redlock);
    await idempotency.run("evt", () => "done");
    await expect.poll(() => text(page)).toMatch(/\bexecuted\b/);
    const counts = () => local.endpoints.map(({ log }) => `${log.requests} requests`);
    await expect.poll(() => page.locator(".counts span:first-child").allTextContents()).toEqual(counts());

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
    const time = ownTime();
    const report = 'report "<b>nightly</b>"';
    const another = new Redlock({ ...patient, endpoints: endpointsFromEnv(local.env()), runtime: time });
    const second = await another.acquire("report", { note: "<b>nightly</b>" });
    await expect.poll(() => text(page)).toContain("reply lost");
    await expect.poll(async () => (await rowOf(page, report))?.endpoints).toBe(" 3 of 3");
    await lose.click();
    await expect.poll(() => local.endpoints[2]!.faults.list()).toEqual([]);
    const released = second.release();
    // At the endpoint that has not answered, it is released in the background, after the timeout.
    await expect.poll(() => time.advance(10_000).then(() => rowOf(page, report))).toBeUndefined();
    expect(await released).toBe(true);

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

describe.skipIf(chromiumPath === undefined)("the page with long names and many locks", () => {
  test("cuts nothing in half, says what is wrong first, and finds what is not drawn", async () => {
    const { local, dev, redlock, close } = await open("embedded");
    const { page, problems, close: leave } = await openPage(browser, dev.url);
    const long = `orders/${"a-long-name-".repeat(20)}`;
    await redlock.acquire(long);
    for (let index = 0; index < 60; index++) await redlock.acquire(`job:${index}`);
    await redlock.acquire(long.replace("orders", "refunds"));

    const held = page.locator("section", { hasText: "Held now" });
    await expect.poll(() => held.locator("h2").innerText()).toMatch(/62, the first 50 are shown/);
    const name = held.locator("td").first();
    expect(await name.locator("span").getAttribute("title")).toBe(long.replace("orders", "refunds"));
    expect(await name.innerText()).toMatch(/^refunds\/a-long.* … .*long-name-$/);
    const isWhole = () =>
      page.evaluate(() =>
        [...document.querySelectorAll("td, li, button, h1, h2")].every(
          ({ scrollWidth, clientWidth }) => scrollWidth <= clientWidth + 1 || clientWidth === 0,
        ),
      );
    // What the pointer is on stays, so that its whole text can appear: only what has changed is drawn anew.
    const [node, remaining] = [await name.elementHandle(), held.locator("td").nth(4)];
    const before = await remaining.textContent();
    await expect.poll(() => remaining.textContent()).not.toBe(before);
    expect(await node!.evaluate(({ isConnected }) => isConnected)).toBe(true);

    await page.getByLabel("Search").fill("job:3 node");
    await expect.poll(() => held.locator("h2").innerText()).toContain("11 of 62 match");
    expect(await held.locator("td:first-child").allTextContents()).toEqual(
      expect.arrayContaining(["job:3", "job:30", "job:39"]),
    );
    const runs = page.locator("section", { hasText: "Idempotent runs" });
    await page.getByLabel("Search").fill("");

    const summary = page.locator("#summary");
    expect(await summary.getAttribute("class")).toBe("");
    for (const endpoint of local.endpoints.slice(0, 2)) {
      await endpoint.execute(["SET", "redlock:tries:{0123456789abcdef}", "A1 t 3", "PX", 600_000]);
    }
    local.endpoints[2]!.faults.add({ fault: "delay", ms: 5 });
    await expect.poll(() => summary.textContent()).toMatch(/1 with faults .* 1 key may be dead/);
    expect(await summary.getAttribute("class")).toBe("bad");
    expect(await runs.locator("tbody tr").first().innerText()).toMatch(/0123456789ab\s+may be dead\s+3/);
    for (const width of [1_280, 760, 390]) {
      await page.setViewportSize({ width, height: 800 });
      expect([await overflows(page), await isWhole()]).toEqual([false, true]);
    }
    expect(problems).toEqual([]);
    await leave();
    await close();
  });
});

describe.skipIf(chromiumPath === undefined)("the page", () => {
  test("says where the token is, and keeps it in its tab", async () => {
    const { dev, close } = await open("embedded");
    const { page, close: leave } = await openPage(browser, new URL("/", dev.url).href, { width: 390 });
    const summary = () => page.locator("#summary").textContent();
    await expect.poll(summary).toMatch(/needs a token.*the address that redis-rest-local has printed/);
    expect(await overflows(page)).toBe(false);
    await page.goto(`${dev.url}x`);
    await expect.poll(summary).toContain("not that of these endpoints");
    await page.goto(dev.url);
    await expect.poll(summary).toContain("3 of 3 endpoints up");
    await page.reload();
    await expect.poll(summary).toContain("3 of 3 endpoints up");
    await close();
    await expect.poll(summary).toContain("No connection");
    await leave();
  });
});
