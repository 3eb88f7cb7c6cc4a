import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type LocalEndpoints, start } from "../../local/src/index.ts";
import { randomSecrets, startWorker } from "../../tools/local-worker.mjs";
import { chromiumPath, type ObservedPage, openBrowser, openPage, overflows } from "../support/browser.ts";
import { until } from "../support/until.ts";

// The page of `npm run dev` in Chromium, on phones and desktops, in light and dark.

const views = [1280, 390].flatMap((width) =>
  (["light", "dark"] as const).map((scheme) => ({ width, scheme })),
);

let local: LocalEndpoints;
let worker: Awaited<ReturnType<typeof startWorker>>;
let browser: Browser;
const opened: ObservedPage[] = [];

beforeAll(async () => {
  if (chromiumPath === undefined) return;
  local = await start({ count: 3, engine: "embedded" });
  worker = await startWorker({ bindings: { ...randomSecrets(), ...local.env() }, samples: true });
  browser = await openBrowser();
  for (const view of views) opened.push(await openPage(browser, `${worker.url}/`, view));
});
afterAll(async () => {
  await browser?.close();
  await worker?.close();
  await local?.close();
});

const query = async (statement: string) => (await worker.database.prepare(statement).all()).results;

/** Waits until every open page says so, in this part of it; its columns must not be cut. */
async function shown(part: string, words: string): Promise<void> {
  for (const { page } of opened) {
    await page.locator(`#${part}`).getByText(words).first().waitFor();
    expect(await overflows(page), `${page.viewportSize()?.width} px`).toBe(false);
  }
}

/** The numbers in the page's tiles, by label. */
const tiles = (page: Page) =>
  page
    .locator("#counts > div")
    .evaluateAll((each) =>
      Object.fromEntries(
        each.map((tile) => [
          tile.querySelector("dt")?.textContent,
          Number(tile.querySelector("dd")?.textContent),
        ]),
      ),
    );

/** Compares the tiles of every page with D1's tables. */
async function tilesMatch(): Promise<void> {
  const counted = await query("SELECT outcome, count(*) AS count FROM deliveries GROUP BY outcome");
  const count = (name: string) =>
    counted.find(({ outcome }: { outcome: string }) => outcome === name)?.count ?? 0;
  const [effects] = await query("SELECT count(*) AS count FROM effects");
  const outcomes = ["executed", "replayed", "busy", "refused", "failed"];
  const expected = {
    ...Object.fromEntries(outcomes.map((outcome) => [outcome, count(outcome)])),
    effects: effects.count,
    "repeated effects": 0,
  };
  for (const { page } of opened) {
    const same = async () => JSON.stringify(await tiles(page)) === JSON.stringify(expected);
    await until(same, `the tiles ${JSON.stringify(expected)}`);
  }
}

describe.skipIf(chromiumPath === undefined)("the live page", () => {
  it("says what came of each button, as the database has it", async () => {
    const { page } = opened[0]!;
    await shown("latest", "Nothing yet");
    expect(await page.locator("#send-again").isDisabled()).toBe(true);

    await page.locator("#send-signed").focus();
    await page.keyboard.press("Enter");
    await shown("latest", "Took effect once");
    expect(await page.evaluate(() => document.activeElement?.id)).toBe("send-signed");
    const [effect, ...others] = await query("SELECT * FROM effects");
    expect(others).toEqual([]);
    await shown("latest", `under fence ${effect.fence}`);
    await shown("entities", effect.entity);
    await tilesMatch();

    await page.click("#send-again");
    await shown("latest", "5 copies got the stored answer");
    for (const each of opened) await each.page.click("#deliveries summary");
    for (const each of opened) expect(await each.page.locator("#deliveries > ol > li").count()).toBe(1);
    expect(await page.locator("#deliveries tbody tr").count()).toBe(6);
    await tilesMatch();

    await page.click("#send-forged");
    await shown("latest", "The signature does not fit");
    // What the reader has opened is still open, and only what is new is marked.
    expect(await page.locator("#deliveries details[open]").count()).toBe(1);
    expect(await page.locator("#deliveries li.changed").allInnerTexts()).toHaveLength(1);
    await tilesMatch();
    expect(await query("SELECT count(*) AS count FROM effects")).toEqual([{ count: 1 }]);
  });

  it("names the endpoints that do not answer, and the votes of what fails", async () => {
    const { page } = opened[0]!;
    const [down, refusing, healthy] = local.endpoints.map(({ url }) => new URL(url).host);
    await local.endpoints[0]!.stop();
    local.endpoints[1]!.faults.add({ fault: "status", status: 401 });
    await page.click("#send-signed");
    await shown("latest", "No quorum: 2 of 3 endpoints failed.");
    await shown("deliveries", `${down}: no connection`);
    await shown("deliveries", `${refusing}: HTTP 401: token refused`);
    await shown("answering", `${down} does not answer: no connection`);
    await shown("answering", `${refusing} does not answer: HTTP 401: token refused`);
    await shown("answering", `${healthy} answers`);
    await shown("answering", "1 of 3 Redis endpoints answer; 2 are needed. No webhook takes effect");
    const [problem] = await query("SELECT votes FROM delivery_problems ORDER BY id DESC LIMIT 1");
    expect(JSON.parse(problem.votes)).toEqual([
      { endpoint: down, outcome: "error", failure: { kind: "network" } },
      { endpoint: refusing, outcome: "error", failure: { kind: "http", status: 401 } },
      // The failures may have decided before its answer came.
      { endpoint: healthy, outcome: expect.stringMatching(/^(granted|pending)$/) },
    ]);
    local.endpoints[1]!.faults.clear();
    await local.endpoints[0]!.start();
    await page.click("#send-again");
    await shown("latest", "Took effect once");
    await tilesMatch();
  });

  it("caused no error and no request to anywhere else", () => {
    expect(opened.map(({ problems }) => problems)).toEqual(views.map(() => []));
  });

  it("asks no more while it is hidden, and a bounded number of times", async () => {
    const { page } = await openPage(browser, `${worker.url}/`, { width: 390 });
    await page.clock.install();
    await page.reload();
    // Counted in the page, so that no answer has to be waited for.
    await page.evaluate(() => {
      Object.assign(globalThis, { asked: 0 });
      globalThis.fetch = async () => {
        Object.assign(globalThis, { asked: (globalThis as unknown as { asked: number }).asked + 1 });
        return new Response(null, { status: 304 });
      };
    });
    const asked = () => page.evaluate(() => (globalThis as unknown as { asked: number }).asked);
    const setHidden = (hidden: boolean) =>
      page.evaluate((value) => {
        Object.defineProperty(document, "hidden", { value, configurable: true });
        document.dispatchEvent(new Event("visibilitychange"));
      }, hidden);
    await page.clock.runFor(60_000);
    expect(await asked()).toBeGreaterThan(8);
    await setHidden(true);
    const before = await asked();
    await page.clock.runFor(600_000);
    expect(await asked()).toBe(before);
    await setHidden(false);
    expect(await asked()).toBe(before + 1);
    await page.clock.runFor(3_600_000);
    expect(await page.innerText("#live-state")).toBe("Paused");
    expect(await asked()).toBe(before + 400);
    await page.click("#live-switch");
    expect(await asked()).toBe(before + 401);
    expect(await page.innerText("#live-state")).toBe("Live");
  });

  it("works without script, except that it must be reloaded", async () => {
    const context = await browser.newContext({
      javaScriptEnabled: false,
      viewport: { width: 390, height: 800 },
    });
    const page = await context.newPage();
    await page.goto(`${worker.url}/`);
    await page.getByText("Reload the page to see what is new.").waitFor();
    expect(await page.locator("#live-switch").isVisible()).toBe(false);
    await page.click("#send-signed");
    const id = await until(async () => {
      await page.goto(`${worker.url}/`);
      const [row] = await query("SELECT delivery FROM deliveries ORDER BY id DESC LIMIT 1");
      return (await page.innerText("#deliveries")).includes(row.delivery) && row.delivery;
    }, "the sample");
    await page.click("#send-again");
    await until(async () => {
      await page.goto(`${worker.url}/`);
      return (await page.innerText("#latest")).includes("5 copies got the stored answer");
    }, "five copies");
    const counted = await query(
      `SELECT outcome, count(*) AS count FROM deliveries WHERE delivery = '${id}' GROUP BY outcome`,
    );
    expect(counted).toEqual([
      { outcome: "executed", count: 1 },
      { outcome: "replayed", count: 5 },
    ]);
    expect(await overflows(page)).toBe(false);
  });
});

describe.skipIf(chromiumPath === undefined)("the page of the deployed Worker", () => {
  it("asks for the secret, keeps no copy that scripts can read, and asks again when the session has ended", async () => {
    const secret = "a secret of this test, long enough";
    const deployed = await startWorker({ bindings: { JOURNAL_SECRET: secret } });
    const { page, problems, close } = await openPage(browser, `${deployed.url}/`, { width: 390 });
    const signIn = async (given: string) => {
      await page.getByLabel(/The secret of this page/).fill(given);
      await page.keyboard.press("Enter");
    };
    const title = (name: string) => page.getByRole("heading", { level: 1, name }).waitFor();
    try {
      await signIn("a guess");
      await page.getByRole("alert").getByText("That is not the secret.").waitFor();
      expect(await overflows(page)).toBe(false);
      await signIn(secret);
      await title("Webhooks that take effect once");
      await page.locator("#live[data-state=live]").waitFor();
      const [kept, ...others] = await page.context().cookies();
      expect(others).toEqual([]);
      expect(kept).toMatchObject({
        name: "__Host-journal",
        httpOnly: true,
        secure: true,
        sameSite: "Strict",
      });
      expect(await page.evaluate(() => document.cookie)).toBe("");
      // As after 12 hours. The open page notices it by itself.
      await page.context().clearCookies();
      await title("Sign in");
      await signIn(secret);
      await page.locator("#sign-out").click();
      await title("Sign in");
      expect(await page.context().cookies()).toEqual([]);
      await page.goBack();
      await title("Sign in");
      // Chromium reports every 401 as an error of the network.
      expect(problems.filter((text) => !text.includes("401"))).toEqual([]);
    } finally {
      await close();
      await deployed.close();
    }
  });
});
