import { createHash, createHmac } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { withIdempotency } from "../../src/http/index.ts";
import { hubspot, qstash, shopify, twilio, type WebhookProvider } from "../../src/webhooks/index.ts";
import { freshKey } from "../support/fresh-key.ts";
import { type Client, clientOf, type OpenStore } from "../support/stores.ts";
import { stores } from "./stand.ts";

// What anyone who captured a genuine delivery can send with its signature: none of it may run again.

const url = "https://shop.example/hook";
const secret = "0123456789abcdef";
const hmac = (text: string, encoding: "hex" | "base64" | "base64url", algorithm = "sha256") =>
  createHmac(algorithm, secret).update(text).digest(encoding);

/** Deliveries that have one signature, or are retries of one event. The first is the genuine one. */
interface Captured {
  readonly provider: WebhookProvider;
  readonly arrivals: readonly { readonly headers: Record<string, string>; readonly body: string }[];
}

const captured: Record<string, (id: string) => Captured> = {
  "Twilio: other orders and spellings of the fields, and another token"(id) {
    const signature = { "x-twilio-signature": hmac(`${url}Body${id}From+1`, "base64", "sha1") };
    const bodies = [
      `Body=${id}&From=%2B1`,
      `From=%2B1&Body=${id}`,
      `%42ody=${id}&From=%2b1`,
      `Body=${id}&From%2B=1`,
    ];
    return {
      provider: twilio({ secret }),
      arrivals: bodies.map((body, index) => ({
        headers: { ...signature, "i-twilio-idempotency-token": `t-${index}` },
        body,
      })),
    };
  },
  "HubSpot: another attempt, at another time"(id) {
    const attempt = (number: number) => {
      const body = `[{"eventId":"${id}","attemptNumber":${number}}]`;
      const time = String(Date.now() + number);
      const signature = hmac(`POST${url}${body}${time}`, "base64");
      return { headers: { "x-hubspot-signature-v3": signature, "x-hubspot-request-timestamp": time }, body };
    };
    return { provider: hubspot({ secret }), arrivals: [0, 1, 2].map(attempt) };
  },
  "Shopify: under its older and newer headers, of another shop, under another id"(id) {
    const body = JSON.stringify({ id });
    const named = (prefix: string, shop: string) => ({
      [`${prefix}-hmac-sha256`]: hmac(body, "base64"),
      [`${prefix}-topic`]: "orders/paid",
      [`${prefix}-shop-domain`]: shop,
      [`${prefix}-webhook-id`]: freshKey(),
    });
    return {
      provider: shopify({ secret, topics: "orders/paid" }),
      arrivals: [named("shopify", "a"), named("x-shopify", "a"), named("shopify", "b")].map((headers) => ({
        headers,
        body,
      })),
    };
  },
  "QStash by its body: another message id, another JWT"(id) {
    const body = JSON.stringify({ id });
    const attempt = (seconds: number) => {
      const nbf = Math.floor(Date.now() / 1_000) - seconds;
      const digest = createHash("sha256").update(body).digest("base64url");
      const claims = { iss: "Upstash", sub: url, nbf, exp: nbf + 300, jti: freshKey(), body: digest };
      const parts = [{ alg: "HS256", typ: "JWT" }, claims].map((part) => JSON.stringify(part));
      const signed = parts.map((part) => Buffer.from(part).toString("base64url")).join(".");
      const headers = {
        "upstash-signature": `${signed}.${hmac(signed, "base64url")}`,
        "upstash-message-id": freshKey(),
      };
      return { headers, body };
    };
    return { provider: qstash({ secret, id: "body", url }), arrivals: [0, 60, 120].map(attempt) };
  },
};

describe.each(stores)("captured deliveries on $title", ({ open, count }) => {
  let store: OpenStore;
  let client: Client;
  beforeAll(async () => {
    store = await open();
    client = clientOf(store);
  });
  afterAll(() => store.close());

  test.each(Object.entries(captured))("run once. %s", async (_, capture) => {
    const { provider, arrivals } = capture(freshKey());
    const answers: string[] = [];
    let runs = 0;
    for (const { headers, body } of arrivals) {
      const request = new Request(url, { method: "POST", headers, body });
      const options = { redlock: client.redlock, provider };
      const handler = () => {
        runs += 1;
        return new Response(`run ${runs}`);
      };
      const answer = await withIdempotency(request, handler, options);
      answers.push(`${answer.status} ${await answer.text()}`);
    }
    expect(answers).toEqual(arrivals.map(() => "200 run 1"));
    expect(arrivals.length).toBeGreaterThan(2);
    expect(count).toBeGreaterThan(0);
  });
});
