import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { forged } from "../../tools/deliveries.mjs";
import { until } from "../support/until.ts";
import { type LocalStand, openStand, sendAtOnce } from "./local-stand.ts";

let stand: LocalStand;
beforeAll(async () => {
  stand = await openStand();
});
afterAll(() => stand?.close());

describe("a genuine delivery", () => {
  it("of GitHub takes effect on its issue, under a fence", async () => {
    const delivery = await stand.github("issues");
    const response = await stand.send(delivery);
    expect(response.status).toBe(200);
    const answer = await response.json();
    expect(answer).toMatchObject({ delivery: delivery.id, entity: "github:Codertocat/Hello-World#1" });
    const [effect, ...others] = await stand.effects(delivery);
    expect(others).toEqual([]);
    expect(effect).toMatchObject({ entity: answer.entity, event: answer.event, fence: answer.fence });
    const [entity] = await stand.query("SELECT * FROM entities WHERE entity = ?1", answer.entity);
    expect(entity).toMatchObject({ fence: answer.fence, last_delivery: delivery.id, events: answer.events });
    const [row] = await stand.journal(delivery, 1);
    expect(row).toMatchObject({ outcome: "executed", status: 200, fence: answer.fence, requests: 6 });
  });

  it("of Stripe takes effect on the object it contains, once for all copies", async () => {
    const delivery = stand.stripe("in_1");
    const statuses = await sendAtOnce(stand, delivery, 6);
    expect(statuses.filter((status) => status !== "replayed" && status !== 503)).toEqual([200]);
    const again = await stand.send(delivery);
    expect([again.status, again.headers.get("idempotent-replayed")]).toEqual([200, "true"]);
    const [effect, ...others] = await stand.effects(delivery);
    expect(others).toEqual([]);
    expect(effect).toMatchObject({ entity: "stripe:in_1", event: "invoice.paid" });
    expect(await again.json()).toEqual({
      delivery: delivery.id,
      event: "invoice.paid",
      entity: "stripe:in_1",
      fence: effect?.fence,
      events: 1,
    });
    const rows = await stand.journal(delivery, 7);
    expect(rows.at(-1)).toMatchObject({ provider: "stripe", outcome: "replayed", entity: "stripe:in_1" });
  });
});

describe("a duplicate", () => {
  it("that arrives later gets the first answer, byte for byte, with one request to each endpoint", async () => {
    const delivery = await stand.github("release");
    const first = await (await stand.send(delivery)).text();
    await stand.journal(delivery, 1);
    const duplicate = await stand.send(delivery);
    expect(duplicate.status).toBe(200);
    expect(duplicate.headers.get("idempotent-replayed")).toBe("true");
    expect(await duplicate.text()).toBe(first);
    expect(await stand.effects(delivery)).toHaveLength(1);
    const [, row] = await stand.journal(delivery, 2);
    expect(row).toMatchObject({ outcome: "replayed", status: 200, fence: null, requests: 3 });
    // The answer waits for a quorum only, and a script is counted when it is answered.
    expect(row!.commands).toBeGreaterThanOrEqual(5);
  });
});

describe("different deliveries about one entity", () => {
  it("take effect one after the other, each under a newer fence", async () => {
    const deliveries = Array.from({ length: 8 }, () => stand.standard("inv_shared"));
    const sent = await Promise.all(
      deliveries.map(async (delivery) => {
        let response = await stand.send(delivery);
        while (response.status === 503) response = await stand.send(delivery);
        return response.status;
      }),
    );
    expect(new Set(sent)).toEqual(new Set([200]));
    const rows = await stand.query(
      "SELECT fence FROM effects WHERE entity = 'standard-webhooks:inv_shared' ORDER BY rowid",
    );
    const fences = rows.map(({ fence }) => Number(fence));
    expect(fences).toHaveLength(8);
    expect(fences).toEqual([...new Set(fences)].sort((a, b) => a - b));
    const [entity] = await stand.query(
      "SELECT events, fence FROM entities WHERE entity = 'standard-webhooks:inv_shared'",
    );
    expect(entity).toEqual({ events: 8, fence: fences.at(-1) });
  });
});

describe("a delivery that is not genuine", () => {
  async function refusal(response: Response): Promise<{ status: number; detail: string }> {
    expect(response.headers.get("content-type")).toBe("application/problem+json");
    const { status, detail } = await response.json();
    expect(status).toBe(response.status);
    return { status, detail };
  }

  it("is refused before any request to Redis", async () => {
    const github = await stand.github("issues");
    const standard = stand.standard("inv_3");
    const stripe = stand.stripe("in_3");
    const before = stand.requests();
    expect(await refusal(await stand.send(forged(github)))).toMatchObject({ status: 401 });
    expect(await refusal(await stand.send(forged(standard)))).toMatchObject({ status: 401 });
    expect(await refusal(await stand.send(forged(stripe)))).toMatchObject({ status: 401 });
    const garbledTime = { ...stripe, headers: { "stripe-signature": "t=now,v1=00" } };
    expect(await refusal(await stand.send(garbledTime))).toMatchObject({ status: 400 });
    const unsigned = { ...github, headers: { "x-github-event": "issues", "x-github-delivery": github.id } };
    expect(await refusal(await stand.send(unsigned))).toMatchObject({ status: 400 });
    const garbled = { ...standard, headers: { ...standard.headers, "webhook-timestamp": "yesterday" } };
    expect(await refusal(await stand.send(garbled))).toMatchObject({ status: 400 });
    expect(stand.requests()).toBe(before);
    expect(await stand.effects(github)).toEqual([]);
    expect(await stand.effects(standard)).toEqual([]);
    expect(await stand.effects(stripe)).toEqual([]);
  });

  it("or cannot be understood is refused, too", async () => {
    const delivery = await stand.github("issues");
    const { "x-github-event": _event, ...headers } = delivery.headers;
    const before = stand.requests();
    expect(await refusal(await stand.send({ ...delivery, headers }))).toEqual({
      status: 400,
      detail: "x-github-event is missing or no event's name",
    });
    expect(stand.requests()).toBe(before);
  });

  it("is only sampled in the journal", async () => {
    const delivery = await stand.github("watch");
    await Promise.all(Array.from({ length: 130 }, () => stand.send(forged(delivery))));
    await stand.send(delivery);
    await stand.journal(delivery, 1);
    const [refused] = await stand.query(
      "SELECT count(*) AS count, count(delivery) AS named FROM deliveries WHERE outcome = 'refused'",
    );
    expect(refused?.count).toBeGreaterThan(0);
    // 60 a minute, and a minute may have ended meanwhile.
    expect(refused?.count).toBeLessThanOrEqual(120);
    expect(refused?.named).toBe(0);
  });
});

describe("the journal", () => {
  it("is listed, newest first", async () => {
    const delivery = stand.standard("inv_5");
    await stand.send(delivery);
    await stand.journal(delivery, 1);
    const list = async (query: string) => (await stand.get(`/deliveries${query}`)).json();
    const all = await list("");
    expect(all.length).toBeGreaterThan(1);
    expect(all[0]).toMatchObject({ delivery: delivery.id, outcome: "executed" });
    expect(await list("?limit=1")).toEqual([all[0]]);
    for (const limit of ["0", "501", "x", "-1", ""]) {
      expect(await list(`?limit=${limit}`)).toMatchObject({ status: 400 });
    }
  });
});

it("the page answers 304 to who has seen it, until a delivery arrives", async () => {
  const load = (version: string) => stand.get("/", { "if-none-match": version });
  const version = await until(async () => {
    const { headers } = await load("");
    const tag = headers.get("etag") ?? "";
    // The health is known, and the journal of the tests above is written.
    return tag.endsWith('.ok.ok.ok.ok"') && (await load(tag)).status === 304 ? tag : undefined;
  }, "304");
  const delivery = stand.standard("inv_8");
  await stand.send(delivery);
  await stand.journal(delivery, 1);
  const changed = await load(version);
  expect([changed.status, changed.headers.get("cache-control")]).toEqual([200, "no-store"]);
  expect(await changed.text()).toContain(
    `data-version="${changed.headers.get("etag")?.replaceAll('"', "&quot;")}"`,
  );
  expect((await load(`W/${changed.headers.get("etag")}`)).status).toBe(304);
});

it("every answer has the security headers", async () => {
  const replayed = stand.standard("inv_7");
  await stand.send(replayed);
  for (const response of [
    await stand.get("/"),
    await stand.get("/page.css"),
    await stand.get("/live.js"),
    await stand.get("/deliveries"),
    await stand.get("/nothing"),
    await fetch(stand.url),
    await stand.send(replayed),
    await stand.send(forged(replayed)),
  ]) {
    const policy = response.headers.get("content-security-policy");
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("script-src 'self'");
    expect(policy).not.toContain("unsafe");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(response.headers.get("x-content-type-options")).toBe("nosniff");
    expect(response.headers.get("referrer-policy")).toBe("no-referrer");
    expect(response.headers.get("cache-control")).toBe("no-store");
  }
});
