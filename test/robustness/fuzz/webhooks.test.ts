import { createHash, createHmac, generateKeyPairSync, sign } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  discord,
  github,
  hubspot,
  lemonSqueezy,
  linear,
  meta,
  paddle,
  qstash,
  sendgrid,
  shopify,
  slack,
  square,
  standardWebhooks,
  stripe,
  twilio,
  twitch,
  type WebhookProvider,
  WebhookVerificationError,
  zoom,
} from "../../../src/webhooks/index.ts";
import { seeded } from "../../support/seeded.ts";
import { forbidUnhandledRejections } from "../../support/unhandled.ts";
import { everythingOf, expectMisuse } from "./messages.ts";
import { type Delivery, moreSenders, now, p256Key, type Sender, url } from "./more-webhook-senders.ts";
import { anything } from "./values.ts";

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const rawSecret = Buffer.from(secret.slice(6), "base64");
const keys = generateKeyPairSync("ed25519");
const rawPublicKey = keys.publicKey.export({ format: "der", type: "spki" }).subarray(-32);
const publicKey = rawPublicKey.toString("base64");
const clock = () => now;

const hmac = (key: string | Uint8Array, ...parts: (string | Uint8Array)[]) =>
  createHmac("sha256", key).update(Buffer.concat(parts.map((part) => Buffer.from(part as string))));
const hashOf = (body: Uint8Array) => createHash("sha256").update(body).digest("hex");

const standard = (how: "v1" | "v1a", headerPrefix: string): Sender => ({
  provider: standardWebhooks(how === "v1" ? { secret, now: clock } : { publicKey, now: clock }),
  unsigned: [],
  tolerance: 300,
  signature: [`${headerPrefix}-signature`, `${how},`, "base64"],
  sign(id, seconds, body) {
    const content = Buffer.concat([Buffer.from(`${id}.${seconds}.`), body]);
    const signature =
      how === "v1"
        ? hmac(rawSecret, content).digest("base64")
        : sign(null, content, keys.privateKey).toString("base64");
    const headers = {
      [`${headerPrefix}-id`]: id,
      [`${headerPrefix}-timestamp`]: String(seconds),
      [`${headerPrefix}-signature`]: `${how},${signature}`,
    };
    return { headers, body };
  },
});

const senders: Record<string, Sender> = {
  ...moreSenders,
  "standard webhooks, v1": standard("v1", "webhook"),
  "standard webhooks, v1a": standard("v1a", "svix"),
  github: {
    provider: github({ secret, id: "header" }),
    unsigned: ["x-github-delivery"],
    signature: ["x-hub-signature-256", "sha256=", "hex"],
    sign(id, _seconds, body) {
      const signature = `sha256=${hmac(secret, body).digest("hex")}`;
      return { headers: { "x-github-delivery": id, "x-hub-signature-256": signature }, body };
    },
  },
  shopify: {
    provider: shopify({ secret, id: "header" }),
    unsigned: ["x-shopify-webhook-id", "x-shopify-topic", "x-shopify-shop-domain"],
    signature: ["x-shopify-hmac-sha256", "", "base64"],
    sign(id, _seconds, body) {
      const headers = {
        "x-shopify-webhook-id": id,
        "x-shopify-topic": "orders/create",
        "x-shopify-shop-domain": "one.myshopify.com",
        "x-shopify-hmac-sha256": hmac(secret, body).digest("base64"),
      };
      return { headers, body };
    },
  },
  linear: {
    provider: linear({ secret, id: "header", now: clock }),
    unsigned: ["linear-delivery"],
    tolerance: 60,
    signature: ["linear-signature", "", "hex"],
    sign(id, seconds, body) {
      const event = { webhookTimestamp: seconds * 1_000, data: Buffer.from(body).toString("latin1") };
      const text = new TextEncoder().encode(JSON.stringify(event));
      const signature = hmac(secret, text).digest("hex");
      return { headers: { "linear-delivery": id, "linear-signature": signature }, body: text };
    },
  },
  stripe: {
    provider: stripe({ secret, now: clock }),
    unsigned: [],
    tolerance: 300,
    signature: ["stripe-signature", "v1=", "hex"],
    sign(_id, seconds, body) {
      const signature = hmac(secret, `${seconds}.`, body).digest("hex");
      return { headers: { "stripe-signature": `t=${seconds},v1=${signature}` }, body };
    },
    idOf: hashOf,
  },
  slack: {
    provider: slack({ secret, now: clock }),
    unsigned: [],
    tolerance: 300,
    signature: ["x-slack-signature", "v0=", "hex"],
    sign(_id, seconds, body) {
      const signature = `v0=${hmac(secret, `v0:${seconds}:`, body).digest("hex")}`;
      const headers = { "x-slack-request-timestamp": String(seconds), "x-slack-signature": signature };
      return { headers, body };
    },
    idOf: hashOf,
  },
  discord: {
    provider: discord({ publicKey: rawPublicKey.toString("hex"), now: clock, tolerance: 300_000 }),
    unsigned: [],
    tolerance: 300,
    signature: ["x-signature-ed25519", "", "hex"],
    sign(_id, seconds, body) {
      const content = Buffer.concat([Buffer.from(String(seconds)), body]);
      const signature = sign(null, content, keys.privateKey).toString("hex");
      return {
        headers: { "x-signature-timestamp": String(seconds), "x-signature-ed25519": signature },
        body,
      };
    },
    idOf: hashOf,
  },
};

/** What separates the signatures of headers that may have several. */
const separators: Readonly<Record<string, string>> = {
  "webhook-signature": " ",
  "svix-signature": " ",
  "stripe-signature": ",",
  "paddle-signature": ";",
};

const latin = fc.string({ unit: fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code)) });
const header = fc.oneof(
  latin,
  fc.string({ unit: fc.constantFrom(..."v1a,= .0189+/-sha256=abAB\t"), maxLength: 100 }),
  fc.constantFrom(
    "",
    "sha256=",
    "v1,",
    "v1a,",
    "v1,AAAA",
    `sha256=${"0".repeat(64)}`,
    "1763714567",
    "x".repeat(5_000),
  ),
);
const id = fc.string({ unit: fc.constantFrom(..."abXYZ_-"), minLength: 1, maxLength: 20 });
const body = fc.uint8Array({ maxLength: 60 }).map((bytes) => new Uint8Array(bytes));

function requestOf(headers: Readonly<Record<string, string>>): Request | undefined {
  try {
    return new Request(url, { method: "POST", headers });
  } catch {
    return undefined; // no server could have received it
  }
}

/** Verifies a delivery; undefined: it is refused. Fails on any other error. */
async function verified(provider: WebhookProvider, { headers, body }: Delivery) {
  const request = requestOf(headers);
  fc.pre(request !== undefined);
  return provider.verify(request!, body).catch((error: unknown) => {
    expect(error, everythingOf(error)).toBeInstanceOf(WebhookVerificationError);
    expect(everythingOf(error)).not.toContain(secret.slice(6));
    return undefined;
  });
}

describe.each(Object.entries(senders))("a webhook of %s", (_, sender) => {
  forbidUnhandledRejections();
  const { provider, unsigned, tolerance = 300, sign: signed } = sender;
  const idOf = (name: string, { body }: Delivery) => sender.idOf?.(body) ?? name;

  test("is accepted as it was signed, and refused when any signed part differs", async () => {
    const change = fc.record({
      part: fc.nat(),
      place: fc.nat(),
      remove: fc.nat(2),
      insert: fc.string({ unit: "binary-ascii", maxLength: 2 }),
    });
    const near = fc.integer({ min: 1 - tolerance, max: tolerance - 1 });
    const seen = { accepted: 0, refused: 0 };
    await fc.assert(
      fc.asyncProperty(id, near, body, change, async (name, offset, bytes, changed) => {
        const seconds = Math.floor(now / 1_000) + offset;
        const delivery = signed(name, seconds, bytes);
        expect(await verified(provider, delivery)).toMatchObject({ id: idOf(name, delivery) });
        seen.accepted += 1;

        const parts = [...Object.keys(delivery.headers), "body"];
        const part = parts[changed.part % parts.length]!;
        const before =
          part === "body" ? Buffer.from(delivery.body).toString("latin1") : delivery.headers[part]!;
        const place = changed.place % (before.length + 1);
        const after = before.slice(0, place) + changed.insert + before.slice(place + changed.remove);
        // HTTP removes space around a header.
        fc.pre(part === "body" ? after !== before : after.trim() !== before);
        const altered =
          part === "body"
            ? { ...delivery, body: new Uint8Array(Buffer.from(after, "latin1")) }
            : { ...delivery, headers: { ...delivery.headers, [part]: after } };
        const outcome = await verified(provider, altered);
        if (unsigned.includes(part)) return;
        // Further signatures beside the true one are ignored.
        const separator = separators[part];
        const beside =
          separator !== undefined &&
          before.split(separator).every((entry) => after.trim().split(separator).includes(entry));
        // Another spelling of what was signed is no new delivery.
        const isSame = sender.spellings && part === "body" && outcome?.id === idOf(name, delivery);
        if (!beside && !isSame) expect(outcome, `${part}: ${JSON.stringify(after)}`).toBeUndefined();
        seen.refused += 1;
      }),
      seeded(50),
    );
    for (const [what, times] of Object.entries(seen)) expect(times, what).toBeGreaterThan(0);
  });

  test("is refused with any bit of its signature flipped", async () => {
    const [part, scheme, encoding] = sender.signature;
    await fc.assert(
      fc.asyncProperty(id, body, fc.nat(), fc.nat(7), async (name, bytes, place, bit) => {
        const delivery = signed(name, Math.floor(now / 1_000), bytes);
        const text = delivery.headers[part]!;
        const from = scheme === "" ? 0 : text.lastIndexOf(scheme) + scheme.length;
        const raw = Buffer.from(text.slice(from), encoding);
        raw[place % raw.length]! ^= 1 << bit;
        const headers = { ...delivery.headers, [part]: text.slice(0, from) + raw.toString(encoding) };
        expect(await verified(provider, { ...delivery, headers })).toBeUndefined();
      }),
      seeded(50),
    );
  });

  test("is refused when it was signed too long ago, or in the future", async () => {
    const least = tolerance + 1;
    const far = fc.oneof(fc.constantFrom(-least, least), fc.integer({ min: least, max: 2 ** 31 }));
    await fc.assert(
      fc.asyncProperty(id, far, body, async (name, offset, bytes) => {
        const delivery = signed(name, Math.max(0, Math.floor(now / 1_000) + offset), bytes);
        const outcome = await verified(provider, delivery);
        // GitHub and Shopify, for example, sign no time.
        if (sender.tolerance === undefined) expect(outcome).toMatchObject({ id: idOf(name, delivery) });
        else expect(outcome).toBeUndefined();
      }),
      seeded(30),
    );
  });

  test("with arbitrary headers is refused with a WebhookVerificationError", async () => {
    const names = Object.keys(signed("id", 0, new Uint8Array()).headers);
    await fc.assert(
      fc.asyncProperty(fc.dictionary(fc.constantFrom(...names), header), body, async (headers, bytes) => {
        expect(await verified(provider, { headers, body: bytes })).toBeUndefined();
      }),
      seeded(50),
    );
  });

  test("whose body is not bytes is misuse", async () => {
    await fc.assert(
      fc.asyncProperty(anything, async (given) => {
        fc.pre(!(given instanceof Uint8Array));
        const { headers } = signed("id", Math.floor(now / 1_000), new Uint8Array());
        const outcome = await provider.verify(requestOf(headers)!, given as Uint8Array).then(
          () => "accepted",
          (error: unknown) => error,
        );
        expectMisuse(outcome);
      }),
      seeded(30),
    );
  });
});

describe("options of a verifier", () => {
  // Called as from JavaScript, without types.
  const makers = {
    "standard webhooks, v1": standardWebhooks,
    github,
    shopify,
    linear,
    stripe,
    slack,
    discord,
    meta,
    "lemon squeezy": lemonSqueezy,
    paddle,
    square,
    twilio,
    hubspot,
    zoom,
    twitch,
    qstash,
    sendgrid,
  } as unknown as Record<string, (options: unknown) => WebhookProvider>;

  /** The options that a verifier needs, where that is not a secret alone. */
  const least: Readonly<Record<string, object>> = {
    discord: { publicKey: rawPublicKey.toString("hex") },
    sendgrid: { publicKey: p256Key },
    square: { secret, url },
    qstash: { secret, id: "header" },
  };

  test.each(Object.entries(makers))(
    "of %s are refused at once, or make a verifier that refuses forgeries",
    async (title, make) => {
      const names = fc.constantFrom("secret", "publicKey", "tolerance", "headerPrefix", "id", "name", "now");
      const key = least[title] ?? { secret };
      const options = fc.oneof(
        fc.dictionary(names, anything, { maxKeys: 3, noNullPrototype: true }),
        fc
          .dictionary(names, anything, { maxKeys: 2, noNullPrototype: true })
          .map((some) => ({ ...key, ...some })),
        anything,
      );
      const { headers } = senders[title]!.sign("id", Math.floor(now / 1_000), new Uint8Array());
      const [part, scheme] = senders[title]!.signature;
      await fc.assert(
        fc.asyncProperty(options, header, async (given, value) => {
          let provider: WebhookProvider;
          try {
            provider = make(given);
          } catch (error) {
            expectMisuse(error);
            expect(everythingOf(error)).not.toContain(secret.slice(6));
            return;
          }
          expect(provider.name).toBeTypeOf("string");
          // Usually well-formed, but not signed with the secret.
          const forged = headers[part]!.replace(/[\w+/=]{40,}$/, (text) =>
            (value + text).slice(0, text.length),
          );
          for (const tried of [value, forged, scheme + value]) {
            if (tried === headers[part]) continue;
            const altered = { ...headers, [part]: tried };
            expect(await verified(provider, { headers: altered, body: new Uint8Array() })).toBeUndefined();
          }
        }),
        seeded(50),
      );
    },
  );
});
