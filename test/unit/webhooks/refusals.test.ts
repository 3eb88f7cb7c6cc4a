import { expect, it } from "vitest";
import { hmacProvider } from "../../../src/webhooks/custom/index.ts";
import { type WebhookProvider, WebhookVerificationError } from "../../../src/webhooks/index.ts";
import { bytes, hmac } from "./outcome.ts";
import { make } from "./vectors.ts";

// What a person reads in the log when a delivery is refused: the sender, the header at fault, and what is wrong with it.

const seconds = 1_763_714_567;
const now = () => seconds * 1_000;
const hex = "0".repeat(64);
const base64 = Buffer.alloc(32).toString("base64");

const providers: Readonly<Record<string, WebhookProvider>> = {
  acme: hmacProvider({
    name: "acme",
    secret: "hush",
    header: "acme-signature",
    prefix: "v1=",
    separator: ",",
    signedText: "{id}.{body}",
    id: { header: ["acme-id", "acme-old-id"] },
  }),
  "acme by body": hmacProvider({ name: "acme", secret: "hush", header: "sig", time: { field: "sent" }, now }),
  github: make("github", { secret: "s", id: "header" }),
  hubspot: make("hubspot", { secret: "s", now }),
  qstash: make("qstash", { secret: "s", id: "body", now }),
  shopify: make("shopify", { secret: "s", topics: "orders/paid" }),
  slack: make("slack", { secret: "s", now }),
  "standard-webhooks": make("standardWebhooks", { secret: `whsec_${base64}`, now }),
  stripe: make("stripe", { secret: "whsec_s", now }),
  twitch: make("twitch", { secret: "s3cre77890ab", now }),
};

const standard = { "webhook-id": "m1", "webhook-timestamp": String(seconds), "webhook-signature": "x" };
const timed = (time: number) => ({
  "x-slack-request-timestamp": String(time),
  "x-slack-signature": `v0=${hex}`,
});
const order = {
  "x-shopify-hmac-sha256": base64,
  "x-shopify-topic": "orders/updated",
  "x-shopify-shop-domain": "a",
};
const hub = { "x-hub-signature-256": `sha256=${hex}` };
const hubspot = { "x-hubspot-signature-v3": base64, "x-hubspot-request-timestamp": String(seconds) };
const twitch = {
  "twitch-eventsub-message-id": "a",
  "twitch-eventsub-message-timestamp": "now",
  "twitch-eventsub-message-signature": `sha256=${hex}`,
};

it.each<[provider: string, headers: Record<string, string>, message: string]>([
  ["github", {}, "github: no header x-hub-signature-256"],
  [
    "github",
    { "x-hub-signature-256": hex },
    "x-hub-signature-256 is not one signature of this sender's form",
  ],
  [
    "github",
    { ...hub, "x-github-delivery": "a b" },
    "x-github-delivery is not 1 to 255 visible ASCII characters",
  ],
  [
    "github",
    { ...hub, "x-github-delivery": "d" },
    "none of the keys made this signature: either the secret or key",
  ],
  ["slack", timed(seconds - 301), "slack: signed too long ago: 301 s, and 300 s are allowed"],
  [
    "slack",
    timed(seconds + 7_200),
    "too far in the future: 7200 s, and 300 s are allowed (do the clocks agree?)",
  ],
  ["slack", timed(1), "x-slack-request-timestamp is not a time of ten digits"],
  ["shopify", order, "shopify: x-shopify-topic is none of the topics that are received here"],
  ["standard-webhooks", standard, "standard-webhooks: webhook-signature is not 1 to 16 signatures v1 or v1a"],
  [
    "standard-webhooks",
    { ...standard, "webhook-id": "a.1" },
    "webhook-id has a part that reads as a timestamp",
  ],
  ["stripe", { "stripe-signature": "x" }, "is not one t= and 1 or more v1=, at most 16 entries"],
  ["hubspot", hubspot, "x-hubspot-request-timestamp is not a time of 13 digits"],
  ["twitch", twitch, "twitch-eventsub-message-timestamp is not a time in UTC"],
  ["qstash", { "upstash-signature": "x" }, "upstash-signature is not a JWT"],
  ["acme", { "acme-signature": "v0=" }, "acme-signature is not 1 or more v1=, at most 16 entries"],
  ["acme", { "acme-signature": `v1=${hex}` }, "no header acme-id or acme-old-id"],
  ["acme", { "acme-signature": `v1=${hex}`, "acme-old-id": "a.b" }, 'acme-old-id contains "."'],
  ["acme by body", { sig: hmac("hush", "{}") }, "acme: no time to compare"],
])("%s refuses %j and says what is wrong", async (name, headers, message) => {
  const request = new Request("https://example.com", { method: "POST", headers });
  const error: unknown = await providers[name]!.verify(request, bytes("{}")).catch((thrown) => thrown);
  expect(error).toBeInstanceOf(WebhookVerificationError);
  expect((error as Error).message).toContain(message);
});
