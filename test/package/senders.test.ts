import { build } from "esbuild";
import { expect, test } from "vitest";

/** A text that is in the code of one sender of webhooks only. */
const marks = {
  discord: "x-signature-ed25519",
  github: "x-github-delivery",
  hubspot: "x-hubspot-signature-v3",
  lemonSqueezy: "lemon-squeezy",
  linear: "linear-signature",
  meta: '"meta"',
  metaChallenge: "hub.challenge",
  paddle: "paddle-signature",
  qstash: "upstash-signature",
  sendgrid: "x-twilio-email-event-webhook-signature",
  shopify: "-hmac-sha256",
  slack: "x-slack-signature",
  square: "x-square-hmacsha256-signature",
  standardWebhooks: "standard-webhooks",
  stripe: "stripe-signature",
  twilio: "i-twilio-idempotency-token",
  twitch: "twitch-eventsub-message-id",
  zoom: "x-zm-signature",
  zoomChallenge: "endpoint.url_validation",
};
const blocks = {
  signatureProvider: '"signatureProvider"',
  requireJwt: "is not a JWT",
};

async function bundle(name: string): Promise<string> {
  const contents = `export { ${name} } from "./src/webhooks/index.ts";`;
  const stdin = { contents, resolveDir: process.cwd(), loader: "ts" } as const;
  const { outputFiles } = await build({ stdin, bundle: true, minify: true, format: "esm", write: false });
  return outputFiles[0]!.text;
}

test("a bundle with one sender has no other, and no building block that it does not use", async () => {
  const all = { ...marks, ...blocks };
  const webhooks: object = await import("../../src/webhooks/index.ts");
  const custom: object = await import("../../src/webhooks/custom/index.ts");
  const senders = Object.keys(webhooks).filter(
    (name) => !["secretTag", "WebhookVerificationError"].includes(name),
  );
  expect(senders.sort()).toEqual(Object.keys(marks).sort());
  expect(Object.keys(blocks).filter((name) => !(name in custom))).toEqual([]);
  for (const name of Object.keys(marks)) {
    const code = await bundle(name);
    const inside = Object.entries(all).flatMap(([other, mark]) => (code.includes(mark) ? [other] : []));
    expect([name, inside.sort()]).toEqual([name, name === "qstash" ? ["qstash", "requireJwt"] : [name]]);
  }
});
