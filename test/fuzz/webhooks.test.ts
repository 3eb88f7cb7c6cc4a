import { createHmac, generateKeyPairSync, sign } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  github,
  standardWebhooks,
  type WebhookProvider,
  WebhookVerificationError,
} from "../../src/webhooks/index.ts";
import { forbidUnhandledRejections } from "../support/unhandled.ts";
import { everythingOf, expectMisuse } from "./messages.ts";
import { seeded } from "./seeded.ts";
import { anything } from "./values.ts";

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const rawSecret = Buffer.from(secret.slice(6), "base64");
const keys = generateKeyPairSync("ed25519");
const publicKey = keys.publicKey.export({ format: "der", type: "spki" }).subarray(-32).toString("base64");
const now = 1_763_714_567_890;

/** A delivery as its sender signed it. */
interface Delivery {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array<ArrayBuffer>;
}

interface Sender {
  readonly provider: WebhookProvider;
  /** Headers that the signature does not cover. */
  readonly unsigned: readonly string[];
  sign(id: string, seconds: number, body: Uint8Array<ArrayBuffer>): Delivery;
}

const standard = (how: "v1" | "v1a", headerPrefix: string): Sender => ({
  provider: standardWebhooks(how === "v1" ? { secret, now: () => now } : { publicKey, now: () => now }),
  unsigned: [],
  sign(id, seconds, body) {
    const content = Buffer.concat([Buffer.from(`${id}.${seconds}.`), body]);
    const signature =
      how === "v1"
        ? createHmac("sha256", rawSecret).update(content).digest("base64")
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
  "standard webhooks, v1": standard("v1", "webhook"),
  "standard webhooks, v1a": standard("v1a", "svix"),
  github: {
    provider: github({ secret: "It's a Secret to Everybody" }),
    unsigned: ["x-github-delivery"],
    sign(id, _seconds, body) {
      const digest = createHmac("sha256", "It's a Secret to Everybody").update(body).digest("hex");
      return { headers: { "x-github-delivery": id, "x-hub-signature-256": `sha256=${digest}` }, body };
    },
  },
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
    return new Request("https://example.com/hooks", { method: "POST", headers });
  } catch {
    return undefined; // no server could have received it
  }
}

/** What a verifier makes of a delivery; fails on anything but its own refusal. */
async function verified(provider: WebhookProvider, { headers, body }: Delivery) {
  const request = requestOf(headers);
  fc.pre(request !== undefined);
  return provider.verify(request!, body).catch((error: unknown) => {
    expect(error, everythingOf(error)).toBeInstanceOf(WebhookVerificationError);
    expect(everythingOf(error)).not.toContain(secret.slice(6));
    return undefined;
  });
}

describe.each(Object.entries(senders))("a webhook of %s", (_, { provider, unsigned, sign: signed }) => {
  forbidUnhandledRejections();

  test("is accepted as it was signed, and not when anything that was signed is another", async () => {
    const change = fc.record({
      part: fc.nat(),
      place: fc.nat(),
      remove: fc.nat(2),
      insert: fc.string({ unit: "binary-ascii", maxLength: 2 }),
    });
    const seen = { accepted: 0, refused: 0 };
    await fc.assert(
      fc.asyncProperty(
        id,
        fc.integer({ min: -299, max: 299 }),
        body,
        change,
        async (name, offset, bytes, changed) => {
          const seconds = Math.floor(now / 1_000) + offset;
          const delivery = signed(name, seconds, bytes);
          expect(await verified(provider, delivery)).toMatchObject({ id: name });
          seen.accepted += 1;

          const parts = [...Object.keys(delivery.headers), "body"];
          const part = parts[changed.part % parts.length]!;
          const before = part === "body" ? Buffer.from(bytes).toString("latin1") : delivery.headers[part]!;
          const place = changed.place % (before.length + 1);
          const after = before.slice(0, place) + changed.insert + before.slice(place + changed.remove);
          // Space around a header is no part of it, in HTTP.
          fc.pre(part === "body" ? after !== before : after.trim() !== before);
          const altered =
            part === "body"
              ? { ...delivery, body: new Uint8Array(Buffer.from(after, "latin1")) }
              : { ...delivery, headers: { ...delivery.headers, [part]: after } };
          const outcome = await verified(provider, altered);
          if (unsigned.includes(part)) return;
          // A signature beside the true one is passed over.
          const beside = /signature$/.test(part) && after.split(" ").includes(before);
          if (!beside) expect(outcome, `${part}: ${JSON.stringify(after)}`).toBeUndefined();
          seen.refused += 1;
        },
      ),
      seeded(120),
    );
    for (const [what, times] of Object.entries(seen)) expect(times, what).toBeGreaterThan(0);
  });

  test("is refused with every bit of its signature turned, whatever the body", async () => {
    await fc.assert(
      fc.asyncProperty(id, body, fc.nat(), fc.nat(7), async (name, bytes, place, bit) => {
        const { headers } = signed(name, Math.floor(now / 1_000), bytes);
        const [part, text] = Object.entries(headers).find(([part]) => part.includes("signature"))!;
        const encoding = text.startsWith("sha256=") ? "hex" : "base64";
        const from = text.search(/[,=]/) + 1;
        const raw = Buffer.from(text.slice(from), encoding);
        raw[place % raw.length]! ^= 1 << bit;
        const turned = { ...headers, [part]: text.slice(0, from) + raw.toString(encoding) };
        expect(await verified(provider, { headers: turned, body: bytes })).toBeUndefined();
      }),
      seeded(120),
    );
  });

  test("is refused when it was signed too long ago, or ahead of time", async () => {
    const far = fc.oneof(fc.constantFrom(-301, 301), fc.integer({ min: 301, max: 2 ** 31 }));
    await fc.assert(
      fc.asyncProperty(id, far, body, async (name, offset, bytes) => {
        const delivery = signed(name, Math.max(0, Math.floor(now / 1_000) + offset), bytes);
        const outcome = await verified(provider, delivery);
        // GitHub signs no time.
        if (unsigned.length > 0) expect(outcome).toEqual({ id: name, idSigned: false });
        else expect(outcome).toBeUndefined();
      }),
      seeded(60),
    );
  });

  test("with anything in its headers is refused, by an error of its own", async () => {
    const names = Object.keys(signed("id", 0, new Uint8Array()).headers);
    await fc.assert(
      fc.asyncProperty(fc.dictionary(fc.constantFrom(...names), header), body, async (headers, bytes) => {
        expect(await verified(provider, { headers, body: bytes })).toBeUndefined();
      }),
      seeded(120),
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
      seeded(60),
    );
  });
});

describe("options of a verifier", () => {
  test("of any type are refused at once, or make one that refuses what nobody signed", async () => {
    const names = fc.constantFrom("secret", "publicKey", "tolerance", "headerPrefix", "name", "now");
    const options = fc.oneof(
      fc.dictionary(names, anything, { maxKeys: 3, noNullPrototype: true }),
      fc
        .dictionary(names, anything, { maxKeys: 2, noNullPrototype: true })
        .map((some) => ({ secret, ...some })),
      anything,
    );
    await fc.assert(
      fc.asyncProperty(options, fc.boolean(), header, async (given, hub, value) => {
        let provider: WebhookProvider;
        try {
          provider = hub ? github(given as never) : standardWebhooks(given as never);
        } catch (error) {
          expectMisuse(error);
          expect(everythingOf(error)).not.toContain(secret.slice(6));
          return;
        }
        expect(provider.name).toBeTypeOf("string");
        const headers = hub
          ? { "x-github-delivery": "id", "x-hub-signature-256": value }
          : { "webhook-id": "id", "webhook-timestamp": "1763714567", "webhook-signature": value };
        expect(await verified(provider, { headers, body: new Uint8Array() })).toBeUndefined();
      }),
      seeded(120),
    );
  });
});
