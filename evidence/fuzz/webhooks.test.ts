import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type WebhookProvider, WebhookVerificationError } from "../../src/webhooks/index.ts";
import { codePoint } from "../../test/support/code-point.ts";
import { seeded } from "../../test/support/seeded.ts";
import { forbidUnhandledRejections } from "../../test/support/unhandled.ts";
import { keyOf, make, providerOf, vectors } from "../../test/unit/webhooks/vectors.ts";
import { everythingOf, expectMisuse } from "./messages.ts";
import { anything } from "./values.ts";

/** The signature at the end of its header. */
const signature = /(?:[0-9a-f]{64,}|[\w+/-]{27,}={0,2})$/;

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
const body = fc.string({ unit: codePoint, maxLength: 60 }).filter((text) => !/\p{Cs}/u.test(text));
interface Delivery {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
  readonly url: string;
}

function requestOf({ url, headers }: Delivery): Request | undefined {
  try {
    return new Request(url, { method: "POST", headers });
  } catch {
    return undefined; // no server could have received it
  }
}

/** Verifies a delivery; undefined: it is refused. Fails on any other error. */
async function verified(provider: WebhookProvider, delivery: Delivery, secret: string) {
  const request = requestOf(delivery);
  fc.pre(request !== undefined);
  return provider.verify(request!, delivery.body).catch((error: unknown) => {
    expect(error, everythingOf(error)).toBeInstanceOf(WebhookVerificationError);
    expect(everythingOf(error)).not.toContain(secret);
    return undefined;
  });
}

describe.each(vectors.map((vector) => [`${vector.sender}, ${vector.from}`, vector] as const))(
  "%s",
  (_, vector) => {
    forbidUnhandledRejections();
    const { sender, headers, optional, unsigned: needed, tolerance = 300_000 } = vector;
    const [, secret] = keyOf(vector);
    const genuine: Delivery = { headers, body: new TextEncoder().encode(vector.body), url: vector.url };
    const verify = (delivery: Delivery, by = providerOf(vector)) => verified(by, delivery, secret);
    const unsigned = [...optional, ...needed];

    test("is accepted within its tolerance, and refused when any signed part differs", async () => {
      const change = fc.record({
        part: fc.nat(),
        place: fc.nat(),
        remove: fc.nat(2),
        insert: fc.string({ unit: "binary-ascii", maxLength: 2 }),
      });
      const near = fc.integer({ min: 1 - tolerance / 1_000, max: tolerance / 1_000 - 1 });
      await fc.assert(
        fc.asyncProperty(near, change, async (offset, changed) => {
          const by = providerOf(vector, {}, () => vector.now - offset * 1_000);
          const accepted = await verify(genuine, by);
          expect(accepted).toBeDefined();

          const parts = [...Object.keys(headers), "body"];
          const part = parts[changed.part % parts.length]!;
          const before = part === "body" ? Buffer.from(genuine.body).toString("latin1") : headers[part]!;
          const place = changed.place % (before.length + 1);
          const after = before.slice(0, place) + changed.insert + before.slice(place + changed.remove);
          // HTTP removes space around a header.
          fc.pre(part === "body" ? after !== before : after.trim() !== before);
          const altered =
            part === "body"
              ? { ...genuine, body: new Uint8Array(Buffer.from(after, "latin1")) }
              : { ...genuine, headers: { ...headers, [part]: after } };
          const outcome = await verify(altered, by);
          if (unsigned.includes(part)) return;
          // Further signatures beside the true one are ignored.
          const separator = separators[part.toLowerCase()];
          const beside =
            separator !== undefined &&
            before.split(separator).every((entry) => after.trim().split(separator).includes(entry));
          // Another spelling of the fields that Twilio signs is no new delivery.
          const isSame = sender === "twilio" && part === "body" && outcome?.id === accepted?.id;
          // Hex may be written in capitals.
          const isCapital =
            /[0-9a-f]{40}/.test(before) && after.trim().toLowerCase() === before.toLowerCase();
          if (!beside && !isSame && !isCapital)
            expect(outcome, `${part}: ${JSON.stringify(after)}`).toBeUndefined();
        }),
        seeded(50),
      );
    });

    test("with arbitrary headers is refused with a WebhookVerificationError", async () => {
      const names = fc.constantFrom(...Object.keys(headers));
      await fc.assert(
        fc.asyncProperty(fc.dictionary(names, header), body, async (given, text) => {
          const delivery = { ...genuine, headers: given, body: new TextEncoder().encode(text) };
          expect(await verify(delivery)).toBeUndefined();
        }),
        seeded(50),
      );
    });

    test("has options that are refused at once, or a verifier that refuses forgeries", async () => {
      const names = fc.constantFrom("secret", "publicKey", "tolerance", "headerPrefix", "id", "name", "now");
      const options = fc.oneof(
        fc.dictionary(names, anything, { maxKeys: 3, noNullPrototype: true }),
        fc
          .dictionary(names, anything, { maxKeys: 2, noNullPrototype: true })
          .map((some) => ({ ...vector.options, ...some })),
        anything,
      );
      const signatureHeader = Object.keys(headers).find((name) => /signature|hmac/i.test(name))!;
      const signed = headers[signatureHeader]!;
      await fc.assert(
        fc.asyncProperty(options, header, async (given, value) => {
          let made: WebhookProvider;
          try {
            made = make(sender, given);
          } catch (error) {
            expectMisuse(error);
            expect(everythingOf(error)).not.toContain(secret);
            return;
          }
          expect(made.name).toBeTypeOf("string");
          // Usually well-formed, but not signed with the secret.
          const forged = signed.replace(signature, (text) => (value + text).slice(0, text.length));
          for (const tried of [value, forged, signed.replace(signature, value)]) {
            if (tried === signed) continue;
            const altered = { ...genuine, headers: { ...headers, [signatureHeader]: tried } };
            expect(await verify(altered, made)).toBeUndefined();
          }
        }),
        seeded(50),
      );
    });
  },
);
