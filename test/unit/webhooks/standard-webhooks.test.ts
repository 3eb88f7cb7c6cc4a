import { createHmac, generateKeyPairSync, type KeyObject, sign as signBytes } from "node:crypto";
import fc from "fast-check";
import { Webhook } from "standardwebhooks";
import { Webhook as SvixWebhook } from "svix";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import {
  type StandardWebhooksOptions,
  standardWebhooks,
  type WebhookProvider,
  WebhookVerificationError,
} from "../../../src/webhooks/index.ts";
import { seeded } from "../../support/seeded.ts";

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const vendor = new Webhook(secret);
const svix = new SvixWebhook(secret);
const id = "msg_p5jXN8AQM9LWM0D4loKWxJek";
const seconds = 1_614_265_330;
const at = seconds * 1_000;
const body = '{"test": 2432232314}';
const bytes = (text: string) => new TextEncoder().encode(text);

interface Parts {
  readonly id?: string;
  readonly timestamp?: string;
  readonly signature?: string;
}

function request(parts: Parts, prefix = "webhook"): Request {
  const headers = new Headers();
  for (const [part, value] of Object.entries(parts)) headers.set(`${prefix}-${part}`, value);
  return new Request("https://example.com/hooks", { method: "POST", headers });
}

/** A delivery of {@link body} as the vendor's package signs it, with some parts replaced. */
function delivery(parts: Parts = {}, prefix?: string): Request {
  const signature = vendor.sign(id, new Date(at), body);
  return request({ id, timestamp: String(seconds), signature, ...parts }, prefix);
}

function hmac(key: string, content: string | Uint8Array): string {
  const raw = Buffer.from(key.replace("whsec_", ""), "base64");
  return `v1,${createHmac("sha256", raw).update(content).digest("base64")}`;
}

function provider(options: StandardWebhooksOptions = {}): WebhookProvider {
  return standardWebhooks({ secret, now: () => at, ...options });
}

async function refusal(by: WebhookProvider, from: Request, content: Uint8Array<ArrayBuffer> = bytes(body)) {
  const error = await by.verify(from, content).then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(WebhookVerificationError);
  return (error as WebhookVerificationError).reason;
}

describe("standardWebhooks", () => {
  it("accepts the signature from the specification's test data", async () => {
    const signature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
    await expect(provider().verify(delivery({ signature }), bytes(body))).resolves.toBeDefined();
  });

  describe("compared with the vendor's package, with the same clock", () => {
    beforeEach(() => {
      vi.useFakeTimers({ toFake: ["Date"], now: at });
    });
    afterEach(() => {
      vi.useRealTimers();
    });

    const accepts = (verifies: () => unknown) => {
      try {
        verifies();
        return true;
      } catch {
        return false;
      }
    };
    const vendorAccepts = (from: Request, content: string) =>
      accepts(() => vendor.verify(content, Object.fromEntries(from.headers), { jsonParse: false }));
    const weAccept = (by: WebhookProvider, from: Request, content: string) =>
      by.verify(from, bytes(content)).then(
        () => true,
        (error: unknown) => {
          expect(error).toBeInstanceOf(WebhookVerificationError);
          return false;
        },
      );

    it("accepts and refuses the same, for changed bodies, ids, timestamps and signatures", async () => {
      const by = standardWebhooks({ secret });
      const seen = { accepted: 0, refused: 0, strict: 0 };
      const changes = fc.record({
        part: fc.constantFrom("none", "body", "id", "timestamp", "signature"),
        from: fc.nat(100),
        remove: fc.nat(2),
        insert: fc.oneof(
          fc.string({ unit: "binary-ascii", maxLength: 2 }),
          fc.constantFrom(" ", ",", "=", ".", "0", "9"),
        ),
      });
      const content = fc.string({ unit: "grapheme" });
      const name = fc.string({ unit: fc.constantFrom(..."abcXYZ_-.089"), minLength: 1, maxLength: 12 });
      // A few minutes in both directions, which includes the edge of the tolerance.
      const shift = fc.oneof(fc.constant(0), fc.integer({ min: -303, max: 303 }));
      await fc.assert(
        fc.asyncProperty(content, name, shift, changes, async (text, msg, offset, change) => {
          const signedAt = seconds + offset;
          const parts = {
            body: text,
            id: msg,
            timestamp: String(signedAt),
            signature: vendor.sign(msg, new Date(signedAt * 1_000), text),
          };
          if (change.part !== "none") {
            const part = change.part as keyof typeof parts;
            const from = change.from % (parts[part].length + 1);
            parts[part] =
              parts[part].slice(0, from) + change.insert + parts[part].slice(from + change.remove);
          }
          const { body: sent, ...headers } = parts;
          fc.pre(!/\p{Cs}/u.test(sent) && !/[\0\r\n]/.test(Object.values(headers).join("")));
          const from = request(headers);
          const theirs = vendorAccepts(from, sent);
          const ours = await weAccept(by, from, sent);
          seen[ours ? "accepted" : "refused"]++;
          // Ours may be stricter, but only in what is documented: ids with a numeric part or beyond visible
          // ASCII, times with something around the digits, signatures with a second comma.
          const strict =
            /\.\d+(\.|$)|[^!-~]/.test(from.headers.get("webhook-id") ?? "") ||
            !/^[1-9]\d*$/.test(from.headers.get("webhook-timestamp") ?? "") ||
            /,.*,/.test(from.headers.get("webhook-signature") ?? "");
          if (strict) seen.strict++;
          if (ours || !strict) expect(ours).toBe(theirs);
        }),
        seeded(500),
      );
      expect(seen.accepted).toBeGreaterThan(30);
      expect(seen.refused).toBeGreaterThan(30);
      expect(seen.strict).toBeLessThan(seen.accepted + seen.refused);
    });

    it("accepts what Svix signs, under either name of the headers, and refuses what Svix refuses", async () => {
      const by = standardWebhooks({ secret });
      // Svix parses what it verifies.
      const content = fc.json().map((text) => text || "{}");
      const wrong = fc.constantFrom("none", "body", "id", "timestamp", "signature", "prefix");
      const seen = { accepted: 0, refused: 0 };
      await fc.assert(
        fc.asyncProperty(content, fc.constantFrom("svix", "webhook"), wrong, async (text, prefix, part) => {
          const headers = {
            id,
            timestamp: String(seconds),
            signature: svix.sign(id, new Date(at), text),
          };
          if (part === "id") headers.id += "x";
          if (part === "timestamp") headers.timestamp = String(seconds + 1);
          if (part === "signature") headers.signature = headers.signature.replace(/,./, ",?");
          const from = request(headers, part === "prefix" ? "other" : prefix);
          const sent = part === "body" ? `${text} ` : text;
          const theirs = accepts(() => svix.verify(sent, Object.fromEntries(from.headers)));
          const ours = await weAccept(by, from, sent);
          expect(ours).toBe(part === "none");
          expect(ours).toBe(theirs);
          seen[ours ? "accepted" : "refused"]++;
        }),
        seeded(200),
      );
      expect(Math.min(seen.accepted, seen.refused)).toBeGreaterThan(0);
    });
  });

  describe("rotation", () => {
    const content = `${id}.${seconds}.${body}`;
    const wrong = `v1,${Buffer.alloc(32).toString("base64")}`;

    it("accepts one good signature among several, at any position and next to any others", async () => {
      const right = hmac(secret, content);
      for (const signature of [
        `${wrong} ${right}`,
        `${right} ${wrong}`,
        `v2,x v1 v1, ,  ${wrong} ${right} v1a,eA==`,
      ]) {
        await expect(provider().verify(delivery({ signature }), bytes(body))).resolves.toBeDefined();
      }
    });

    it("refuses a header full of signatures without checking them", async () => {
      const sign = vi.spyOn(crypto.subtle, "sign");
      try {
        const most = [...Array<string>(15).fill(wrong), hmac(secret, content)].join(" ");
        await expect(provider().verify(delivery({ signature: most }), bytes(body))).resolves.toBeDefined();
        sign.mockClear();
        expect(await refusal(provider(), delivery({ signature: `${wrong} ${most}` }))).toBe(
          "malformed-header",
        );
        expect(sign).not.toHaveBeenCalled();
      } finally {
        sign.mockRestore();
      }
    });
  });

  describe("Ed25519", () => {
    const pair = generateKeyPairSync("ed25519");
    const raw = (key: KeyObject) => Buffer.from(key.export({ format: "jwk" }).x ?? "", "base64url");
    const publicKey = `whpk_${raw(pair.publicKey).toString("base64")}`;
    const v1a = (content: string, by: KeyObject = pair.privateKey) =>
      `v1a,${signBytes(null, Buffer.from(content), by).toString("base64")}`;
    const content = `${id}.${seconds}.${body}`;

    it("refuses another key's signature, and one of other content", async () => {
      const by = provider({ secret: undefined, publicKey });
      const stranger = generateKeyPairSync("ed25519").privateKey;
      expect(await refusal(by, delivery({ signature: v1a(content, stranger) }))).toBe("bad-signature");
      expect(await refusal(by, delivery({ signature: v1a(`${content} `) }))).toBe("bad-signature");
      const elsewhere = v1a(content).replace("v1a,", "v1,");
      expect(await refusal(by, delivery({ signature: elsewhere }))).toBe("malformed-header");
    });

    it("checks each scheme with its own keys only", async () => {
      const both = provider({ publicKey: [publicKey] });
      for (const signature of [v1a(content), hmac(secret, content)]) {
        await expect(both.verify(delivery({ signature }), bytes(body))).resolves.toBeDefined();
      }
      expect(await refusal(provider(), delivery({ signature: v1a(content) }))).toBe("bad-signature");
      const wrongFirst = `${v1a(content)} ${hmac(secret, `${content} `)}`;
      await expect(both.verify(delivery({ signature: wrongFirst }), bytes(body))).resolves.toBeDefined();
      // The public key is known to everybody: an HMAC with it as the secret must be refused.
      const forged = hmac(publicKey.replace("whpk_", ""), content);
      expect(await refusal(both, delivery({ signature: forged }))).toBe("bad-signature");
    });
  });

  describe("headers", () => {
    it("uses the prefix with all three headers, despite a stray header of another", async () => {
      const from = delivery({}, "svix");
      from.headers.set("webhook-id", "something-else");
      await expect(provider().verify(from, bytes(body))).resolves.toMatchObject({ id });
    });

    it("uses a configured prefix and no other", async () => {
      const by = provider({ headerPrefix: "Acme-Webhook" });
      await expect(by.verify(delivery({}, "acme-webhook"), bytes(body))).resolves.toMatchObject({ id });
      expect(await refusal(by, delivery())).toBe("missing-header");
    });

    it("does not mix the headers of two prefixes", async () => {
      const from = delivery();
      from.headers.delete("webhook-id");
      from.headers.set("svix-id", id);
      expect(await refusal(provider(), from)).toBe("missing-header");
    });

    it.each([
      ["an id of 256 characters", { id: "a".repeat(256) }],
      ["an id that is not ASCII", { id: "msgé" }],
      ["an id with a space", { id: "a, b" }],
      ["a timestamp with something behind it", { timestamp: `${seconds}x` }],
      ["a fraction", { timestamp: `${seconds}.5` }],
      ["a sign", { timestamp: `-${seconds}` }],
      ["an exponent", { timestamp: "1e9" }],
      ["a timestamp beyond all bounds", { timestamp: "9".repeat(400) }],
      ["a signature without a scheme", { signature: "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=" }],
      ["only unknown schemes", { signature: "v2,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=" }],
      ["a short signature", { signature: "v1,g0hM9SsE" }],
      ["no padding", { signature: "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE" }],
      // Decodes to the right bytes, because the last two bits before the padding are unused.
      ["another spelling of the bytes", { signature: "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OF=" }],
      ["base64 cut off within a byte", { signature: "v1,g0hM9" }],
      ["padding in the middle", { signature: "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1=E=" }],
      ["a signature that is not ASCII", { signature: "v1,é0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=" }],
    ])("refuses as malformed: %s", async (_, parts) => {
      expect(await refusal(provider(), delivery(parts))).toBe("malformed-header");
    });

    it("refuses a genuine delivery that is split at other places", async () => {
      // Signed as id, time and this body; then split so that a later time is read out of the body.
      const later = seconds + 86_400;
      const genuine = `note.${later}.{"type":"paid"}`;
      const signature = vendor.sign(id, new Date(at), genuine);
      const forged = request({ id: `${id}.${seconds}.note`, timestamp: String(later), signature });
      const by = provider({ now: () => later * 1_000 });
      expect(await refusal(by, forged, bytes('{"type":"paid"}'))).toBe("malformed-header");
    });

    it("accepts an id with dots between parts that are not numbers", async () => {
      const dotted = "evt.a1.2b";
      const signature = vendor.sign(dotted, new Date(at), body);
      const verified = await provider().verify(delivery({ id: dotted, signature }), bytes(body));
      expect(verified.id).toBe(dotted);
    });
  });
});

describe("standardWebhooks at set-up", () => {
  const key = (length: number) => `whsec_${Buffer.alloc(length, 1).toString("base64")}`;

  it.each([24, 25, 26, 64])("accepts a secret of %i bytes, with and without prefix and padding", (length) => {
    for (const text of [key(length), key(length).slice(6), key(length).replace(/=+$/, "")]) {
      expect(() => standardWebhooks({ secret: text })).not.toThrow();
    }
  });

  it.each<StandardWebhooksOptions>([
    {},
    { secret: "whsec_not*base64*not*base64*not*base64" },
    { secret: key(23) },
    { secret: key(65) },
    { secret: [secret, "whsec_short"] },
    { secret: `whsk_${Buffer.alloc(64, 1).toString("base64")}` },
    { secret: `whpk_${Buffer.alloc(32, 1).toString("base64")}` },
    { publicKey: `whpk_${Buffer.alloc(31, 1).toString("base64")}` },
    { publicKey: key(32) },
    { secret, publicKey: "" },
    { secret, headerPrefix: "" },
    { secret, headerPrefix: [] },
    { secret, headerPrefix: "webhook-" },
  ])("throws a TypeError for %j", (options) => {
    const named = Object.keys(options).at(-1) ?? "secret or publicKey";
    const message = expect.stringMatching(new RegExp(`^${named} `));
    expect(() => standardWebhooks(options)).toThrow(expect.objectContaining({ name: "TypeError", message }));
  });
});
