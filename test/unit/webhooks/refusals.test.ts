import { createHmac } from "node:crypto";
import { describe, expect, it } from "vitest";
import { hmacProvider } from "../../../src/webhooks/custom/index.ts";
import {
  github,
  shopify,
  slack,
  standardWebhooks,
  stripe,
  type WebhookProvider,
} from "../../../src/webhooks/index.ts";

// What a person reads in the log when a delivery is refused: the sender, the header at fault, and what is wrong with it.

const seconds = 1_763_714_567;
const now = () => seconds * 1_000;
const hex = "0".repeat(64);
const base64 = Buffer.alloc(32).toString("base64");
const standard = { "webhook-id": "m1", "webhook-timestamp": String(seconds), "webhook-signature": "x" };
const timed = { "x-slack-request-timestamp": String(seconds), "x-slack-signature": `v0=${hex}` };
const order = { "x-shopify-hmac-sha256": base64, "x-shopify-topic": "orders/updated" };
const hub = { "x-hub-signature-256": `sha256=${hex}` };
const acme = hmacProvider({
  name: "acme",
  secret: "hush",
  header: "acme-signature",
  prefix: "v1=",
  separator: ",",
  signedText: "{id}.{body}",
  id: { header: ["acme-id", "acme-old-id"] },
});
const providers = {
  acme,
  github: github({ secret: "s", id: "header" }),
  shopify: shopify({ secret: "s", topics: "orders/paid" }),
  slack: slack({ secret: "s", now }),
  "standard-webhooks": standardWebhooks({ secret: `whsec_${base64}`, now }),
  stripe: stripe({ secret: "whsec_s", now }),
};

async function messageOf(provider: WebhookProvider, headers: Record<string, string>): Promise<string> {
  const request = new Request("https://example.com", { method: "POST", headers });
  const refused = provider.verify(request, new TextEncoder().encode("{}"));
  return refused.then(
    () => expect.unreachable("it was accepted"),
    (error: Error) => error.message,
  );
}

describe("the message of a refusal", () => {
  it.each<[keyof typeof providers, Record<string, string>, string]>([
    ["github", {}, "no header x-hub-signature-256"],
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
    [
      "slack",
      { ...timed, "x-slack-request-timestamp": String(seconds - 301) },
      "signed too long ago: 301 s, and 300 s are allowed",
    ],
    [
      "slack",
      { ...timed, "x-slack-request-timestamp": String(seconds + 7_200) },
      "signed too far in the future: 7200 s, and 300 s are allowed",
    ],
    [
      "shopify",
      { ...order, "x-shopify-shop-domain": "a" },
      "x-shopify-topic is none of the topics that are received here",
    ],
    ["standard-webhooks", standard, "webhook-signature is not 1 to 16 signatures v1 or v1a"],
    [
      "standard-webhooks",
      { ...standard, "webhook-id": "a.1" },
      "webhook-id has a part that reads as a timestamp",
    ],
    [
      "stripe",
      { "stripe-signature": "x" },
      "stripe-signature is not one t= and 1 or more v1=, at most 16 entries",
    ],
    ["acme", { "acme-signature": "v0=" }, "acme-signature is not 1 or more v1=, at most 16 entries"],
    ["acme", { "acme-signature": `v1=${hex}` }, "no header acme-id or acme-old-id"],
    ["acme", { "acme-signature": `v1=${hex}`, "acme-old-id": "a.b" }, 'acme-old-id contains "."'],
  ])("of %s to %j names what is wrong", async (name, headers, message) => {
    expect(await messageOf(providers[name], headers)).toContain(`${name}: ${message}`);
  });

  it("says that a time is missing where it is not a number", async () => {
    const provider = hmacProvider({
      name: "acme",
      secret: "hush",
      header: "sig",
      time: { field: "sent" },
      now,
    });
    const signature = createHmac("sha256", "hush").update("{}").digest("hex");
    expect(await messageOf(provider, { sig: signature })).toBe("acme: no time to compare");
  });
});
