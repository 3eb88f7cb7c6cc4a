import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { forged } from "../../tools/deliveries.mjs";
import { startWorker } from "../../tools/local-worker.mjs";
import { until } from "../support/until.ts";
import { type LocalStand, openStand } from "./local-stand.ts";

let stand: LocalStand;
/** What nobody may learn who does not know the secret: about a delivery, and which endpoints there are. */
let secrets: string[];

beforeAll(async () => {
  stand = await openStand();
  const delivery = stand.standard("inv_private");
  for (const _ of [1, 2]) expect((await stand.send(delivery)).status).toBe(200);
  await stand.journal(delivery, 2);
  const hosts = stand.endpoints.map(({ url }) => new URL(url).host);
  secrets = [delivery.id, "inv_private", "invoice.paid", ...hosts];
});
afterAll(() => stand?.close());

const leaks = (text: string) => secrets.filter((secret) => text.includes(secret));

const basic = (name: string, password: string) => ({
  authorization: `Basic ${Buffer.from(`${name}:${password}`).toString("base64")}`,
});
const get = (path: string, headers: Record<string, string> = {}) => fetch(stand.url + path, { headers });
const reader = () => basic("journal", stand.secrets.JOURNAL_SECRET);

/** What a reader sees, row by row. */
async function rows(): Promise<string[]> {
  const [, table = ""] = (await (await get("/", reader())).text()).split(`<ul class="events">`);
  return table.split("</li>").map((row) =>
    row
      .replace(/<[^>]*>|&nbsp;/g, " ")
      .replace(/\s+/g, " ")
      .trim(),
  );
}

it("the page has a row for each event: how often it was delivered and handled", async () => {
  for (const _ of [1, 2]) await stand.send(forged(stand.stripe("in_1")));
  const shown = await until(async () => {
    const found = await rows();
    return found[0]?.includes("2 times, refused") ? found : undefined;
  }, "the refused deliveries");
  const time = String.raw`(?:now|\d+ s ago)`;
  const key = `standard-webhooks:${secrets[0]}`;
  expect(shown.slice(0, 2)).toEqual([
    expect.stringMatching(
      new RegExp(
        `^⊘ in the name of stripe , delivered 2 times, refused: The delivery is not genuine ${time}$`,
      ),
    ),
    expect.stringMatching(
      new RegExp(
        `^✓ invoice.paid of standard-webhooks:inv_private, delivered 2 times, handled once ${time} · ${key}$`,
      ),
    ),
  ]);
});

describe("a stranger", () => {
  it.each<[string, () => Record<string, string>]>([
    ["nothing", () => ({})],
    ["another name", () => basic("admin", stand.secrets.JOURNAL_SECRET)],
    ["the beginning of the secret", () => basic("journal", stand.secrets.JOURNAL_SECRET.slice(0, -1))],
    ["no password", () => basic("journal", "")],
    ["the secret in another form", () => ({ authorization: `Bearer ${stand.secrets.JOURNAL_SECRET}` })],
  ])("with %s learns nothing of deliveries and endpoints", async (_, headers) => {
    for (const path of ["/", "/page.css", "/nothing"]) {
      const response = await get(path, headers());
      expect([response.status, response.headers.get("www-authenticate")]).toEqual([
        401,
        expect.stringMatching(/^Basic /),
      ]);
      expect(leaks(await response.text())).toEqual([]);
    }
    const health = await get("/healthz", headers());
    expect([health.status, await health.json()]).toEqual([200, { status: "ok" }]);
  });
});

it("a reader gets page and style sheet, which no other site can use or keep", async () => {
  const [page, css] = [await get("/", reader()), await get("/page.css", reader())];
  const html = await page.text();
  expect(leaks(html)).toEqual(secrets);
  // It shows by itself what is new.
  expect(html).toContain('<meta http-equiv="refresh" content="10">');
  expect([css.status, css.headers.get("content-type")]).toEqual([200, "text/css; charset=utf-8"]);
  expect(page.headers.get("cache-control")).toBe("no-store");
  for (const { headers } of [page, css]) {
    const policy = headers.get("content-security-policy");
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toMatch(/script-src|unsafe/);
    expect(headers.get("x-content-type-options")).toBe("nosniff");
    expect(headers.get("referrer-policy")).toBe("no-referrer");
  }
});

it.each(["", "0123456789abcdefghijklmnopqrstu"])(
  "without a secret, or with a short one, the page is closed and says why (%o)",
  async (secret) => {
    const closed = await startWorker({ bindings: { JOURNAL_SECRET: secret } });
    try {
      const response = await fetch(closed.url, { headers: basic("journal", secret) });
      expect([response.status, await response.text()]).toEqual([
        403,
        "The page is closed: set JOURNAL_SECRET, 32 characters or more.\n",
      ]);
    } finally {
      await closed.close();
    }
  },
);

it("the page escapes all data", async () => {
  // Imported by a variable, so that the compiler does not follow: it needs workerd's types, which conflict with Node's.
  const file = "../../worker/page/page.ts";
  const { page } = await import(file);
  const rendered = async (text: string): Promise<string> => {
    const row = {
      at: 1,
      sender: text,
      status: 200,
      delivered: 1,
      handled: 0,
      outcome: "retry",
      reason: text,
    };
    return String(
      await page({
        health: { ok: false, parts: [{ name: text, problem: text }] },
        events: [
          { ...row, delivery_key: text, event: text, entity: text },
          { ...row, delivery_key: null, event: null, entity: null },
        ],
        now: 2,
      }),
    );
  };
  const nasty = `"><script>alert('1')</script>&amp;`;
  const tags = (text: string) => text.match(/<[^>]*>/g);
  expect(tags(await rendered(nasty))).toEqual(tags(await rendered("plain")));
  expect((await rendered(nasty)).match(/&lt;script&gt;alert/g)).toHaveLength(8);
});
