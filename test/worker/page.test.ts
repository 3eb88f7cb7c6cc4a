import { describe, expect, it } from "vitest";
import { type DeliveryRow, type EntityRow, type PageData, page } from "../../worker/page.ts";

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
  entities: [entity],
};

const unescaped = (html: string) =>
  html
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&quot;", '"')
    .replaceAll("&#39;", "'")
    .replaceAll("&amp;", "&");

const tile = (label: string, count: string) => `<dt>${label}</dt><dd>${count}</dd>`;

describe("page", () => {
  it("counts every outcome, including those that never happened", () => {
    const html = page(data);
    expect(html).toContain(tile("executed", "12,345"));
    expect(html).toContain(tile("replayed", "0"));
    expect(html).toContain(tile("busy", "2"));
    expect(html).toContain(tile("effects", "12,345"));
    expect(html).toContain(tile("repeated effects", "0"));
  });

  it("shows a repeated effect as a failure", () => {
    const colour = (repeated: number) =>
      /<div class="count (\w*)"><dt>repeated effects/.exec(
        page({ ...data, effects: { performed: 9, repeated } }),
      );
    expect(colour(0)?.[1]).toBe("");
    expect(colour(1)?.[1]).toBe("failed");
  });

  it("shows deliveries and entities with their fences, times in UTC", () => {
    const html = page(data);
    expect(html.match(/1735787045000/g)).toHaveLength(2);
    expect(html.match(/2025-01-02 03:04:05/g)).toHaveLength(2);
    expect(html).not.toContain("None yet");
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
    };
    const html = page({ ...data, deliveries: [refused] });
    expect(html).toContain('<td class="text id"></td>');
    expect(html).not.toContain("null");
  });

  it("says that there is nothing yet", () => {
    const html = page({ ...data, deliveries: [], entities: [] });
    expect(html.match(/None yet/g)).toHaveLength(2);
    expect(html).not.toContain("<table>");
  });

  it("escapes all data", () => {
    const nasty = `"><script>alert('1')</script>&amp;`;
    const clean = page(data);
    const html = page({
      urls: { github: `https://a/${nasty}`, standardWebhooks: `https://b/${nasty}` },
      counts: data.counts,
      effects: data.effects,
      deliveries: [{ ...delivery, provider: nasty, delivery: nasty, event: nasty, entity: nasty }],
      entities: [{ ...entity, entity: nasty, last_event: nasty, last_delivery: nasty }],
    });
    const tags = (text: string) => text.match(/<[^>]*>/g);
    expect(tags(html)).toEqual(tags(clean));
    // Seven cells. In the two examples it is also quoted for the shell.
    expect(unescaped(html).split(nasty).length - 1).toBe(7);
    expect(unescaped(html).split("alert(").length - 1).toBe(9);
  });

  it("forbids scripts", () => {
    expect(page(data)).toContain(`content="default-src 'none'; style-src 'unsafe-inline'"`);
  });

  it("quotes the addresses in its examples for the shell", () => {
    const html = page({ ...data, urls: { ...data.urls, github: "https://a'$(id)'b/github" } });
    expect(unescaped(html)).toContain(`curl -i 'https://a'\\''$(id)'\\''b/github' -H`);
  });
});
