import { generateKeyPairSync, type KeyObject, sign as signBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import { type StandardWebhooksOptions, secretTag, standardWebhooks } from "../../../src/webhooks/index.ts";
import { hmac, outcome } from "./outcome.ts";

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const id = "msg_p5jXN8AQM9LWM0D4loKWxJek";
const seconds = 1_614_265_330;
const body = '{"test": 2432232314}';
const content = `${id}.${seconds}.${body}`;
const key = (length: number, fill = 1) => Buffer.alloc(length, fill).toString("base64");

const v1 = (signed: string, by = secret) =>
  `v1,${hmac(Buffer.from(by.replace("whsec_", ""), "base64"), signed, "base64")}`;
const wrong = `v1,${key(32, 0)}`;

interface Sent {
  readonly id?: string;
  readonly timestamp?: string;
  readonly signature?: string;
  readonly body?: string;
  readonly prefix?: string;
  readonly more?: Readonly<Record<string, string>>;
}

/** A genuine delivery, with some parts replaced, as a provider sees it. */
function send(sent: Sent = {}, options: StandardWebhooksOptions = {}) {
  const { prefix = "webhook", more } = sent;
  const headers = {
    [`${prefix}-id`]: sent.id ?? id,
    [`${prefix}-timestamp`]: sent.timestamp ?? String(seconds),
    [`${prefix}-signature`]: sent.signature ?? v1(content),
    ...more,
  };
  const by = standardWebhooks({ secret, name: "n", now: () => seconds * 1_000, ...options });
  return outcome(by, { headers, body: sent.body ?? body });
}

const accepted = { id, timestamp: seconds * 1_000, idSigned: true };

describe("secrets as senders show them", () => {
  it("Supabase's have the scheme before the prefix", async () => {
    expect(await send({}, { secret: `v1,${secret}` })).toEqual(accepted);
    expect(() => standardWebhooks({ secret: `v1,${secret}|v1,${secret}` })).toThrow(/: several are an array/);
    const publicKey = `v1a,whpk_${key(32)}`;
    expect(() => standardWebhooks({ publicKey })).not.toThrow();
  });

  it("Polar's, until September 2026, sign as text: with whsec_ as they are, others as base64 of them", async () => {
    const byText = (text: string) => `v1,${hmac(text, content, "base64")}`;
    expect(await send({ signature: byText(secret) })).toEqual(accepted);
    // Only the text as the sender shows it.
    expect(await send({ signature: byText(secret) }, { secret: secret.slice(6) })).toBe("bad-signature");
    const older = "polar_whs_ovyN6cPrTv56AApvzCaJno08SSmGJmgbWilb33N2JuK";
    expect(() => standardWebhooks({ secret: older })).toThrow(/give btoa\(secret\)/);
    expect(await send({ signature: byText(older) }, { secret: btoa(older) })).toEqual(accepted);
  });
});

it.each([
  [`v2,x v1 v1, ,  ${wrong} ${v1(content)} v1a,eA==`, accepted],
  [[...Array<string>(15).fill(wrong), v1(content)].join(" "), accepted],
  [[...Array<string>(16).fill(wrong), v1(content)].join(" "), "malformed-header"],
])("one good signature of 16 is enough: %s", async (signature, expected) => {
  expect(await send({ signature })).toEqual(expected);
});

describe("the schemes v1 and v1a", () => {
  const pair = generateKeyPairSync("ed25519");
  const publicKey = Buffer.from(pair.publicKey.export({ format: "jwk" }).x!, "base64url").toString("base64");
  const v1a = (signed: string, by: KeyObject = pair.privateKey) =>
    `v1a,${signBytes(null, Buffer.from(signed), by).toString("base64")}`;

  it("are each checked with their own keys only", async () => {
    const both = { publicKey: [`whpk_${publicKey}`] };
    for (const signature of [v1a(content), v1(content), `${v1a(content)} ${v1(`${content} `)}`]) {
      expect(await send({ signature }, both)).toEqual(accepted);
    }
    expect(await send({ signature: v1a(content) })).toBe("bad-signature");
    const elsewhere = v1a(content).replace("v1a,", "v1,");
    expect(await send({ signature: elsewhere }, both)).toBe("malformed-header");
    // The public key is known to everybody: an HMAC with it as the secret must be refused.
    expect(await send({ signature: v1(content, publicKey) }, both)).toBe("bad-signature");
  });

  it("make the tags of the secrets, or of the public keys if there are no secrets", async () => {
    const both = { publicKey, name: undefined };
    expect(await send({}, both)).toMatchObject({
      secretTags: [await secretTag(Buffer.from(secret.replace("whsec_", ""), "base64"))],
    });
    expect(await send({ signature: v1a(content) }, { ...both, secret: undefined })).toMatchObject({
      secretTags: [await secretTag(Buffer.from(publicKey, "base64"))],
    });
  });
});

describe("the headers", () => {
  it("are those of the first prefix that has all three", async () => {
    expect(await send({ prefix: "svix", more: { "webhook-id": "something-else" } })).toEqual(accepted);
    const mixed = { "webhook-timestamp": String(seconds), "webhook-signature": v1(content) };
    expect(await send({ prefix: "other", more: { ...mixed, "svix-id": id } })).toBe("missing-header");
  });

  it("have a configured prefix and no other", async () => {
    const options = { headerPrefix: "Acme-Webhook" };
    expect(await send({ prefix: "acme-webhook" }, options)).toEqual(accepted);
    expect(await send({}, options)).toBe("missing-header");
  });

  it("split no genuine delivery at other places", async () => {
    // Signed as id, time and this body; then split so that a later time is read out of the body.
    const later = seconds + 86_400;
    const signature = v1(`${id}.${seconds}.note.${later}.{"type":"paid"}`);
    const forged = {
      id: `${id}.${seconds}.note`,
      timestamp: String(later),
      signature,
      body: '{"type":"paid"}',
    };
    expect(await send(forged, { now: () => later * 1_000 })).toBe("malformed-header");
  });

  it("may have an id with dots between parts that are not numbers", async () => {
    const dotted = "evt.a1.2b";
    const sent = { id: dotted, signature: v1(`${dotted}.${seconds}.${body}`) };
    expect(await send(sent)).toEqual({ ...accepted, id: dotted });
  });
});
