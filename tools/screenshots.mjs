// Draws the screenshots of the docs with Debian's Chromium: `node tools/screenshots.mjs [--only twice]`. Each page has
// an entry below: it starts what the page needs, brings it into the state to be shown, and ends it.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";
import sharp from "sharp";
import { readArguments, refuse } from "./arguments.mjs";
import { devPageScript } from "./bundle.mjs";
import { forged, send, stripeDelivery } from "./deliveries.mjs";
import { load, project } from "./load.mjs";
import { randomSecrets, startWorker } from "./local-worker.mjs";

/**
 * By name of the image: shows the page in the given tab, and resolves with what ends it again.
 *
 * @type {Record<string, (page: import("playwright-core").Page) => Promise<() => Promise<unknown>>>}
 */
const pages = {
  // The picture of README.md, in the size of previews of links.
  async twice(page) {
    await page.setViewportSize({ width: 1_200, height: 630 });
    const svg = await readFile(join(project, "docs/images/twice.svg"), "utf8");
    await page.setContent(`<body style="margin: 0; display: grid; place-content: center">${svg}</body>`);
    await page.addStyleTag({ content: "svg { height: 620px; width: auto }" });
    return () => Promise.resolve();
  },
  async worker(page) {
    const { start } = await load("local/src/index.ts");
    const local = await start();
    const secrets = randomSecrets();
    const worker = await startWorker({ bindings: { ...secrets, ...local.env() } });
    const paid = stripeDelivery(secrets.STRIPE_WEBHOOK_SECRET, "invoice.paid", { id: "in_42" }, "evt_4217");
    await send(worker.url, forged(paid));
    for (const copies of [1, 5])
      await Promise.all(Array.from({ length: copies }, () => send(worker.url, paid)));
    const { host } = new URL(worker.url);
    await page.setViewportSize({ width: 1_000, height: 420 });
    const rows = page.locator(".events li");
    // The journal is written after the answers.
    do await page.goto(`http://journal:${secrets.JOURNAL_SECRET}@${host}/`);
    while ((await rows.count()) < 2 || !(await rows.allInnerTexts()).join().includes("6 times"));
    return () => Promise.all([worker.close(), local.close()]);
  },
  async local(page) {
    const { openPage, start } = await load("local/src/page/index.ts");
    const local = await start();
    const opened = await openPage(local, { script: devPageScript });
    await page.setViewportSize({ width: 1_200, height: 1_020 });
    await page.goto(opened.url);
    const shown = (...texts) =>
      texts
        .reduce((rows, hasText) => rows.filter({ hasText }), page.locator("tr"))
        .first()
        .waitFor();
    const lock = { ttl: 60_000, fencing: true };
    const { endpointsFromEnv, Redlock } = await load("src/index.ts");
    const { Idempotency } = await load("src/idempotency/index.ts");
    const redlock = new Redlock({ endpoints: endpointsFromEnv(local.env()) });
    const idempotency = new Idempotency(redlock);
    const held = await redlock.acquire("invoice:42", lock);
    await shown("invoice:42", "acquired", "1, 2, 3");
    const other = runWaiter(local.env(), lock);
    await shown("invoice:42", "held by another");
    for (const result of ["paid", "paid twice"]) await idempotency.run("evt_1", () => result);
    await held.release();
    await other.hasLock;
    await page.getByRole("article", { name: "endpoint-3" }).getByLabel("lose replies").click();
    await page.getByText("up, 1 fault").waitFor();
    other.extend();
    await shown("invoice:42", "extended", "1, 2");
    await redlock.acquire("report/daily", { ttl: 60_000 });
    await shown("report/daily", "acquired", "1, 2");
    await shown("report/daily", "lock");
    await page.mouse.move(0, 0);
    await page.evaluate(() => document.activeElement?.blur());
    return async () => {
      other.end();
      await opened.close();
      await local.close();
    };
  },
};

/** A second client, in a process of its own: it waits for the lock, and extends it when it is told to. */
function runWaiter(env, options) {
  const program = `
    import { once } from "node:events";
    import { load } from ${JSON.stringify(pathToFileURL(join(project, "tools/load.mjs")).href)};
    const { endpointsFromEnv, Redlock } = await load("src/index.ts");
    const redlock = new Redlock({ endpoints: endpointsFromEnv(process.env) });
    const lock = await redlock.acquire("invoice:42", { ...${JSON.stringify(options)}, wait: 60_000 });
    console.log("has the lock");
    await once(process.stdin, "data");
    await lock.extend(60_000);
    await once(process.stdin, "data");`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", program], {
    env: { ...process.env, ...env },
    stdio: ["pipe", "pipe", "inherit"],
  });
  return {
    hasLock: once(child.stdout, "data"),
    extend: () => child.stdin.write("\n"),
    end: () => child.kill(),
  };
}

const usage = `node tools/screenshots.mjs [--only ${Object.keys(pages).join("|")}]`;
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
    const image = name === "local" ? "local/docs/images/page.png" : `docs/images/${name}.png`;
    const path = join(project, image);
    const taken = await page.screenshot();
    // 256 colours are enough for text and lines, and a third of the size.
    await sharp(taken).png({ palette: true, colours: 256, dither: 0, compressionLevel: 9 }).toFile(path);
    await page.close();
    await end();
    console.log(`wrote ${image}`);
  }
} finally {
  await browser.close();
}
process.exit(0);
