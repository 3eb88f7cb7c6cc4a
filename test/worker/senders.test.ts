import { createHash, createHmac, randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Delivery } from "../../tools/deliveries.mjs";
import { type LocalStand, openStand } from "./local-stand.ts";

// None of these senders publishes a library that signs, so this follows their documentation.

const secrets = {
  SHOPIFY_CLIENT_SECRET: `shpss_${randomUUID()}`,
  SLACK_SIGNING_SECRET: randomUUID(),
  LINEAR_WEBHOOK_SECRET: `lin_wh_${randomUUID()}`,
};

let stand: LocalStand;
beforeAll(async () => {
  stand = await openStand(secrets);
});
afterAll(() => stand?.close());

function shopify(webhook: string, topic: string, payload: unknown): Delivery {
  const body = JSON.stringify(payload);
  const id = createHash("sha256").update(body).digest("hex");
  const shop = "a.myshopify.com";
  return {
    provider: "shopify",
    key: `shopify:${topic}:${id}`,
    id,
    path: "/webhooks/shopify",
    headers: {
      "x-shopify-hmac-sha256": createHmac("sha256", secrets.SHOPIFY_CLIENT_SECRET)
        .update(body)
        .digest("base64"),
      "x-shopify-shop-domain": shop,
      "x-shopify-topic": topic,
      "x-shopify-webhook-id": webhook,
    },
    body,
  };
}

function slack(id: string, payload: unknown): Delivery {
  const body = JSON.stringify(payload);
  const seconds = String(Math.floor(Date.now() / 1_000));
  const signature = createHmac("sha256", secrets.SLACK_SIGNING_SECRET).update(`v0:${seconds}:${body}`);
  return {
    provider: "slack",
    key: `slack:${id}`,
    id,
    path: "/webhooks/slack",
    headers: {
      "x-slack-request-timestamp": seconds,
      "x-slack-signature": `v0=${signature.digest("hex")}`,
    },
    body,
  };
}

/** Its key and id are hashes of the body. */
function linear(payload: object, age = 0): Delivery {
  const body = JSON.stringify({ ...payload, webhookTimestamp: Date.now() - age });
  return {
    provider: "linear",
    key: "",
    id: "",
    path: "/webhooks/linear",
    headers: {
      "linear-signature": createHmac("sha256", secrets.LINEAR_WEBHOOK_SECRET).update(body).digest("hex"),
      "linear-delivery": randomUUID(),
    },
    body,
  };
}

const effectsOn = (entity: string) => stand.query("SELECT * FROM effects WHERE entity = ?1", entity);

describe("Shopify", () => {
  it("acts once per topic and body, under any delivery id", async () => {
    const id = randomUUID();
    const created = shopify(id, "orders/create", { id: 42 });
    const paid = shopify(id, "orders/paid", { id: 42 });
    for (const delivery of [created, paid, created, paid]) {
      expect((await stand.send(delivery)).status).toBe(200);
    }
    expect(await stand.effects(created)).toHaveLength(1);
    expect(await stand.effects(paid)).toHaveLength(1);
    // Captured, and sent again under invented names.
    expect((await stand.send(shopify(randomUUID(), "orders/create", { id: 42 }))).status).toBe(200);
    expect((await stand.send(shopify(randomUUID(), "orders/made-up", { id: 42 }))).status).toBe(400);
    expect(await effectsOn("shopify:a.myshopify.com/orders/42")).toHaveLength(2);
  });
});

describe("Slack", () => {
  it("acts once per event", async () => {
    const id = `Ev${randomUUID()}`;
    const event = { type: "message", channel: "C42", user: "U1" };
    const delivery = slack(id, { type: "event_callback", team_id: "T1", event_id: id, event });
    expect((await stand.send(delivery)).status).toBe(200);
    expect((await stand.send(delivery)).headers.get("idempotent-replayed")).toBe("true");
    expect(await stand.effects(delivery)).toMatchObject([{ entity: "slack:T1/C42", event: "message" }]);
  });

  it("gets its challenge answered each time, without an effect", async () => {
    const challenge = randomUUID();
    const delivery = slack("", { type: "url_verification", token: "t", challenge });
    for (const _time of [1, 2]) {
      const response = await stand.send(delivery);
      expect(response.status).toBe(200);
      expect(response.headers.get("content-type")).toMatch(/^text\/plain/);
      expect(await response.text()).toBe(challenge);
    }
    expect(await effectsOn("slack:unknown")).toEqual([]);
    const forged = { ...delivery, body: delivery.body.replace(challenge, randomUUID()) };
    expect((await stand.send(forged)).status).toBe(401);
  });
});

describe("Linear", () => {
  const hour = 60 * 60 * 1_000;

  it("acts once per event, also for late retries under another id", async () => {
    const issue = randomUUID();
    const payload = { type: "Issue", action: "update", data: { id: issue, title: "x" } };
    expect((await stand.send(linear(payload))).status).toBe(200);
    const late = await stand.send(linear(payload, 7 * hour));
    expect([late.status, late.headers.get("idempotent-replayed")]).toEqual([200, "true"]);
    expect(await effectsOn(`linear:${issue}`)).toMatchObject([{ event: "Issue.update" }]);
  });

  it("is refused a delivery that is older than its last retry", async () => {
    const payload = { type: "Issue", action: "update", data: { id: randomUUID() } };
    expect((await stand.send(linear(payload, 9 * hour))).status).toBe(401);
  });
});
