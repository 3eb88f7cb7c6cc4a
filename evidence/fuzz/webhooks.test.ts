import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type WebhookProvider, WebhookVerificationError } from "../../src/webhooks/index.ts";
import { codePoint } from "../../test/support/code-point.ts";
import { seeded } from "../../test/support/seeded.ts";
import { forbidUnhandledRejections } from "../../test/support/unhandled.ts";
import { at, type Delivery, leastOptions, makerOf, url } from "../../test/unit/webhooks/sender.ts";
import { senders } from "../../test/unit/webhooks/senders.ts";
import { everythingOf, expectMisuse } from "./messages.ts";
import { anything } from "./values.ts";

const now = () => at;

/** Headers that no signature covers. */
const unsigned =
  /^(x-github-delivery|x-shopify-(?!hmac).*|linear-delivery|x-zm-trackingid|upstash-message-id|i-twilio-.*)$/;

/** The signature at the end of its header. */
const signature = /(?:[0-9a-f]{64,}|[\w+/-]{27,}={0,2})$/;

/** Signs a text; where the body has a form of its own, inside of that. */
function signed(title: string, seconds: number, text: string): Delivery {
  const { sign, secrets } = senders[title]!;
  const time = seconds * 1_000;
  const forms: Readonly<Record<string, object>> = {
    linear: { webhookTimestamp: time, data: text },
    hubspot: [{ text }],
  };
  return sign(secrets[0], time, title in forms ? JSON.stringify(forms[title]) : text);
}

/** What separates the signatures of headers that may have several. */
const separators: Readonly<Record<string, string>> = {
  "webhook-signature": " ",
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
const body = fc.string({ unit: codePoint, maxLength: 60 }).filter((text) => !/\p{Cs}/u.test(text));
const seconds = Math.floor(at / 1_000);

function requestOf(headers: Readonly<Record<string, string>>): Request | undefined {
  try {
    return new Request(url, { method: "POST", headers });
  } catch {
    return undefined; // no server could have received it
  }
}

/** Verifies a delivery; undefined: it is refused. Fails on any other error. */
async function verified(provider: WebhookProvider, { headers, body }: Delivery, secret: string) {
  const request = requestOf(headers);
  fc.pre(request !== undefined);
  return provider.verify(request!, body).catch((error: unknown) => {
    expect(error, everythingOf(error)).toBeInstanceOf(WebhookVerificationError);
    expect(everythingOf(error)).not.toContain(secret);
    return undefined;
  });
}

describe.each(Object.entries(senders))("a webhook of %s", (title, sender) => {
  forbidUnhandledRejections();
  const [secret] = sender.secrets;
  const provider = sender.make(secret, { now });
  const verify = (delivery: Delivery) => verified(provider, delivery, secret);
  const { tolerance = 300_000, signatureHeader } = sender;

  test("is accepted as it was signed, and refused when any signed part differs", async () => {
    const change = fc.record({
      part: fc.nat(),
      place: fc.nat(),
      remove: fc.nat(2),
      insert: fc.string({ unit: "binary-ascii", maxLength: 2 }),
    });
    const near = fc.integer({ min: 1 - tolerance / 1_000, max: tolerance / 1_000 - 1 });
    const seen = { accepted: 0, refused: 0 };
    await fc.assert(
      fc.asyncProperty(near, body, change, async (offset, text, changed) => {
        const delivery = signed(title, seconds + offset, text);
        const genuine = await verify(delivery);
        expect(genuine).toBeDefined();
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
        const outcome = await verify(altered);
        if (unsigned.test(part)) return;
        // Further signatures beside the true one are ignored.
        const separator = separators[part];
        const beside =
          separator !== undefined &&
          before.split(separator).every((entry) => after.trim().split(separator).includes(entry));
        // Another spelling of the fields that Twilio signs is no new delivery.
        const isSame = title === "twilio" && part === "body" && outcome?.id === genuine?.id;
        if (!beside && !isSame) expect(outcome, `${part}: ${JSON.stringify(after)}`).toBeUndefined();
        seen.refused += 1;
      }),
      seeded(50),
    );
    for (const [what, times] of Object.entries(seen)) expect(times, what).toBeGreaterThan(0);
  });

  test("with arbitrary headers is refused with a WebhookVerificationError", async () => {
    const names = Object.keys(signed(title, seconds, "").headers);
    await fc.assert(
      fc.asyncProperty(fc.dictionary(fc.constantFrom(...names), header), body, async (headers, text) => {
        expect(await verify({ headers, body: new TextEncoder().encode(text) })).toBeUndefined();
      }),
      seeded(50),
    );
  });

  test("has options that are refused at once, or a verifier that refuses forgeries", async () => {
    const least = leastOptions(title, sender);
    const names = fc.constantFrom("secret", "publicKey", "tolerance", "headerPrefix", "id", "name", "now");
    const options = fc.oneof(
      fc.dictionary(names, anything, { maxKeys: 3, noNullPrototype: true }),
      fc
        .dictionary(names, anything, { maxKeys: 2, noNullPrototype: true })
        .map((some) => ({ ...least, ...some })),
      anything,
    );
    const { headers, body: content } = signed(title, seconds, "");
    const genuine = headers[signatureHeader]!;
    await fc.assert(
      fc.asyncProperty(options, header, async (given, value) => {
        let made: WebhookProvider;
        try {
          made = makerOf(title)(given);
        } catch (error) {
          expectMisuse(error);
          expect(everythingOf(error)).not.toContain(secret);
          return;
        }
        expect(made.name).toBeTypeOf("string");
        // Usually well-formed, but not signed with the secret.
        const forged = genuine.replace(signature, (text) => (value + text).slice(0, text.length));
        for (const tried of [value, forged, genuine.replace(signature, value)]) {
          if (tried === genuine) continue;
          const altered = { ...headers, [signatureHeader]: tried };
          expect(await verified(made, { headers: altered, body: content }, secret)).toBeUndefined();
        }
      }),
      seeded(50),
    );
  });
});
