import { describe, expect, it } from "vitest";
import { type PageData, page } from "../../worker/page/page.ts";
import type { DeliveryRow, EntityRow } from "../../worker/rows.ts";

const at = Date.UTC(2025, 0, 2, 3, 4, 5);

const delivery: DeliveryRow = {
  id: 1,
  at,
  provider: "github",
  delivery: "72d3162e-cc78-11e3-81ab-4c9367dc0958",
  event: "issues.opened",
  entity: "octo/demo#42",
  outcome: "executed",
  status: 200,
  fence: 1_735_787_045_000,
  requests: 4,
  commands: 5,
  ms: 17,
  reason: null,
  votes: null,
};

const entity: EntityRow = {
  entity: "octo/demo#42",
  events: 3,
  last_event: "issues.opened",
  last_delivery: "72d3162e-cc78-11e3-81ab-4c9367dc0958",
  updated_at: at,
  fence: 1_735_787_045_000,
};

const data: PageData = {
  urls: {
    github: "https://example.com/webhooks/github",
    standardWebhooks: "https://example.com/webhooks/standard",
  },
  counts: { executed: 12_345, busy: 2 },
  effects: { performed: 12_345, repeated: 0 },
  deliveries: [delivery],
  firsts: [delivery],
  entities: [entity],
  health: {
    status: "ok",
    senders: ["github"],
    quorum: { answered: 2, needed: 2 },
    endpoints: [
      { name: "a.upstash.io", answered: true },
      { name: "b.upstash.io", answered: true },
      { name: "c.upstash.io", answered: false, failure: { kind: "http", status: 401 } },
    ],
    database: { answered: true },
  },
  version: '"1.ok.ok.http-401.ok"',
};

const unescaped = (html: string) =>
  html
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&quot;", '"')
    .replaceAll("&#39;", "'")
    .replaceAll("&amp;", "&");

/** What a reader sees, on one line. */
const words = (html: string) => unescaped(html.replace(/<[^>]*>/g, " ")).replace(/\s+/g, " ");

// live-page.long.test.ts has what a browser shows of the journal.
describe("page", () => {
  it("shows a repeated effect as a failure", () => {
    const colour = (repeated: number) =>
      /<div class="count (\w*)"><dt>repeated effects/.exec(
        page({ ...data, effects: { performed: 9, repeated } }),
      );
    expect(colour(0)?.[1]).toBe("");
    expect(colour(1)?.[1]).toBe("failed");
  });

  it("shows deliveries and entities with their fences, times in UTC", () => {
    const text = words(page(data));
    expect(text).toContain("✓ executed issues.opened of octo/demo#42 2025-01-02 03:04:05 UTC");
    expect(text).toContain("Took effect once, under fence 1735787045000.");
    expect(text).toContain("octo/demo#42 issues.opened, 2025-01-02 03:04:05 UTC 3 1735787045000");
    expect(text).not.toContain("None yet");
  });

  it("leaves unknown fields of a refused delivery empty", () => {
    const refused: DeliveryRow = {
      ...delivery,
      outcome: "refused",
      status: 401,
      delivery: null,
      event: null,
      entity: null,
      fence: null,
      reason: "The signature does not fit.",
    };
    const html = page({ ...data, deliveries: [refused], firsts: [] });
    expect(words(html)).toContain("A delivery in the name of github");
    expect(words(html)).toContain("Refused, without effect. The signature does not fit.");
    expect(html).not.toContain("null");
  });

  it("escapes all data", () => {
    const nasty = `"><script>alert('1')</script>&amp;`;
    const row = (text: string): DeliveryRow => ({
      ...delivery,
      provider: text,
      delivery: text,
      event: text,
      entity: text,
      reason: text,
      votes: [{ endpoint: text, outcome: "granted" }],
    });
    const rendered = (text: string) =>
      page({
        urls: { github: `https://a/${text}`, standardWebhooks: `https://b/${text}` },
        counts: data.counts,
        effects: data.effects,
        deliveries: [{ ...row(text), id: 2 }, row(text)],
        firsts: [row(text)],
        entities: [{ ...entity, entity: text, last_event: text, last_delivery: text }],
        health: text,
        version: text,
      });
    const tags = (text: string) => text.match(/<[^>]*>/g)?.map((tag) => tag.replace(/="[^"]*"/g, ""));
    const html = rendered(nasty);
    expect(tags(html)).toEqual(tags(rendered("plain")));
    expect(html).not.toContain("<script>alert");
    expect(unescaped(html)).toContain(nasty);
  });

  it("loads its script and style from the Worker, has none inline, and has no buttons that send", () => {
    const html = page(data);
    expect(html.match(/<script[^>]*>[^<]*/g)).toEqual(['<script type="module" src="/live.js">']);
    expect(html).not.toMatch(/<style|style=|\son\w+=|javascript:/);
    expect(html).not.toMatch(/<form|<input|samples/);
  });

  it("quotes the addresses in its examples for the shell", () => {
    const html = page({ ...data, urls: { ...data.urls, github: "https://a'$(id)'b/github" } });
    expect(unescaped(html)).toContain(`curl -i 'https://a'\\''$(id)'\\''b/github' -H`);
  });
});
