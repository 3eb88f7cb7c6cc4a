import { describe, expect, it, test } from "vitest";
import { keyPairFor, signedDelivery } from "../../../src/testing/index.ts";
import { signatureProvider } from "../../../src/webhooks/custom/index.ts";
import * as webhooks from "../../../src/webhooks/index.ts";
import { outcome } from "../webhooks/outcome.ts";
import { vectors } from "../webhooks/vectors.ts";

const { discord, github, linear, meta, qstash, sendgrid, shopify, slack, stripe, twilio } = webhooks;

type Sender = (options: object) => webhooks.WebhookProvider;

const senderOf = (name: string) => (webhooks as unknown as Record<string, Sender>)[name]!;

const senders = [...new Set(vectors.map(({ sender }) => sender))].map(
  (sender) => [sender, vectors.find((vector) => vector.sender === sender)!] as const,
);

test.each(senders)("a delivery of %s is accepted, unless it is too old", async (name, { options }) => {
  const sender = senderOf(name);
  const keys = "publicKey" in options ? await keyPairFor(sender as never) : {};
  const { privateKey: _, ...own } = { privateKey: undefined, ...options, ...keys };
  const verified = await outcome(sender(own), await signedDelivery(sender, { ...options, ...keys }));
  expect(verified).toMatchObject({ id: expect.any(String) });
  const old = () => signedDelivery(sender, { ...options, ...keys }, { timestamp: Date.now() - 86_400_000 });
  const signsTime = vectors.some(({ sender: of, verified }) => of === name && verified.timestamp);
  if (!signsTime) return expect(old()).rejects.toThrow("signs no time");
  const isTimeless = name === "discord" || name === "sendgrid";
  const expected = isTimeless ? expect.objectContaining({ idSigned: true }) : "outside-tolerance";
  expect(await outcome(sender(own), await old())).toEqual(expected);
});

it("signs numbers of every length: each has its own DER", async () => {
  const keys = await keyPairFor(sendgrid);
  for (let count = 0; count < 300; count += 1) {
    const sent = await signedDelivery(sendgrid, keys, { body: [{ sg_event_id: `${count}` }] });
    expect(await outcome(sendgrid({ publicKey: keys.publicKey }), sent)).toMatchObject({ idSigned: true });
  }
});

test("the id and the time stand where the sender puts them", async () => {
  const secret = "whsec_test";
  const timestamp = 1_763_714_567_890;
  const now = () => timestamp;
  const inBody = await signedDelivery(stripe, { secret, now }, { body: { id: "evt_old" }, id: "evt_1" });
  expect(JSON.parse(inBody.body)).toEqual({ id: "evt_1" });
  expect(inBody.headers["stripe-signature"]).toMatch(/^t=1763714567,v1=[0-9a-f]{64}$/);
  const sent = await signedDelivery(linear, { secret, now }, { body: { action: "create" }, id: "one" });
  expect(JSON.parse(sent.body)).toEqual({ action: "create", webhookTimestamp: timestamp });
  expect(sent.headers["linear-delivery"]).toBe("one");
  const byHeader = { secret, id: "header" } as const;
  const job = await signedDelivery(qstash, byHeader, { id: "msg_1" });
  expect(await outcome(qstash(byHeader), job)).toMatchObject({ id: "msg_1", idSigned: false });
  const [one, two] = [await signedDelivery(stripe, { secret }), await signedDelivery(stripe, { secret })];
  expect(JSON.parse(one.body).id).not.toBe(JSON.parse(two.body).id);
});

test("Twilio gets forms, or JSON whose hash is in the URL", async () => {
  const options = { secret: "12345", url: "https://shop.example/sms?a=1" };
  const form = await signedDelivery(twilio, options, { body: { From: "+1 2", Body: "ä&b" } });
  expect([form.body, form.headers["content-type"]]).toEqual([
    "From=%2B1+2&Body=%C3%A4%26b",
    "application/x-www-form-urlencoded",
  ]);
  expect(await outcome(twilio(options), form)).toMatchObject({ idSigned: true });
  const json = await signedDelivery(twilio, options, { body: '{"a":1}' });
  expect(json.url).toMatch(/^https:\/\/shop\.example\/sms\?a=1&bodySHA256=[0-9a-f]{64}$/);
  expect(await outcome(twilio(options), json)).toMatchObject({ idSigned: true });
  expect(await outcome(twilio(options), { ...json, body: '{"a":2}' })).toBe("bad-signature");
});

test("Shopify sends a topic that is received, or the one that is given", async () => {
  const options = { secret: "hush", topics: ["orders/paid"] };
  const delivery = await signedDelivery(shopify, options);
  expect(await outcome(shopify(options), delivery)).toMatchObject({ scope: ["orders/paid"] });
  const other = await signedDelivery(shopify, options, { headers: { "Shopify-Topic": "orders/create" } });
  expect(await outcome(shopify(options), other)).toBe("malformed-header");
});

describe("a sender of your own", () => {
  const acme = {
    name: "acme",
    header: "acme-signature",
    prefix: "v1=",
    separator: " ",
    signedText: "{id}.{time}.{body}",
    time: { entry: "at=" },
    id: { header: "acme-id" },
  } as const;

  it.each(["hex", "base64", "base64url"] as const)("signs in %s", async (encoding) => {
    const options = { ...acme, algorithm: "HMAC-SHA512", key: "hush", encoding } as const;
    const delivery = await signedDelivery(signatureProvider, options, { id: "one" });
    expect(await outcome(signatureProvider(options), delivery)).toMatchObject({ id: "one", idSigned: true });
    const forged = { ...delivery, body: `${delivery.body} ` };
    expect(await outcome(signatureProvider(options), forged)).toBe("bad-signature");
  });

  it("signs with a private key", async () => {
    const parameters = { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256", modulusLength: 2048 };
    const pair = await crypto.subtle.generateKey(
      { ...parameters, publicExponent: Uint8Array.of(1, 0, 1) },
      true,
      ["sign", "verify"],
    );
    const key = new Uint8Array(await crypto.subtle.exportKey("spki", pair.publicKey));
    const options = { ...acme, algorithm: "RSA-SHA256", key, encoding: "base64" } as const;
    const { privateKey } = pair;
    const delivery = await signedDelivery(signatureProvider, { ...options, privateKey }, { id: "one" });
    expect(await outcome(signatureProvider(options), delivery)).toMatchObject({ id: "one" });
    await expect(signedDelivery(signatureProvider, options)).rejects.toThrow("privateKey is missing");
  });
});

test("what would have no effect is refused, and so is what the sender refuses", async () => {
  const secret = "whsec_test";
  const refused = (promise: Promise<unknown>) => promise.catch((error: Error) => error.message);
  const wrong = { ids: ["evt_1"] } as object;
  const read = () => ({ signatures: [], signed: "" });
  const readByCode = { name: "acme", algorithm: "HMAC-SHA256", key: "hush", read } as const;
  for (const [promise, message] of [
    [signedDelivery(meta, { secret }, { id: "one" }), /^meta sends no id/],
    [signedDelivery(github, { secret }, { timestamp: 0 }), /^github signs no time/],
    [signedDelivery(stripe, { secret }, { body: "{}", id: "evt_1" }), /^"id" is a field of the body/],
    [signedDelivery(linear, { secret }, { body: "{}", timestamp: 0 }), /^"webhookTimestamp" is a field/],
    [signedDelivery(slack, { secret }, { timestamp: 1_763_714_567 }), /^timestamp must be in ms/],
    [signedDelivery(stripe, { secret }, wrong), /^signedDelivery has no option "ids"/],
    [signedDelivery(stripe, { secret }, { body: Uint8Array.of(1) }), /^body must be an object or a string/],
    [signedDelivery(stripe, { secret: "sk_test" }), /^secret must be/],
    [signedDelivery(discord, { publicKey: "00".repeat(32) }), /^discord .* privateKey is missing/],
    [signedDelivery(signatureProvider, readByCode), /^acme .* sign .* yourself/],
    [keyPairFor(stripe as never), /^sender must be discord, sendgrid or standardWebhooks/],
  ] as const) {
    expect(await refused(promise)).toMatch(message);
  }
});
