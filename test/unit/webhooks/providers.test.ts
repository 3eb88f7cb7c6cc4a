import { createHash, createHmac, generateKeyPairSync, sign as signBytes } from "node:crypto";
import { describe, expect, it, vi } from "vitest";
import { isRedlockError } from "../../../src/errors.ts";
import {
  discord,
  github,
  linear,
  shopify,
  slack,
  standardWebhooks,
  stripe,
  type ToleranceOptions,
  type WebhookProvider,
  WebhookVerificationError,
} from "../../../src/webhooks/index.ts";

// What all providers have in common. What is specific to one is tested in its own file.

const at = 1_763_714_567_890;
const bytes = (text: string) => new TextEncoder().encode(text);
const hmac = (secret: string | Uint8Array, content: string | Uint8Array) =>
  createHmac("sha256", secret).update(content);

const hash = (text: string) => createHash("sha256").update(text).digest("hex");

interface Delivery {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array<ArrayBuffer>;
}

/** Headers that are reported, but on which no decision depends. */
const hints = /^(x-github-delivery|x-shopify-webhook-id|linear-delivery)$/;

/** The options that providers accept whose senders sign no time. */
const named = ({ name }: { readonly name?: string } = {}) => (name === undefined ? {} : { name });

interface Sender {
  make(secret: string | readonly string[], options?: ToleranceOptions & { name?: string }): WebhookProvider;
  /** Two valid secrets, and values that set-up refuses. */
  readonly secrets: readonly [string, string];
  readonly badSecrets: readonly string[];
  /** Signs an event that happened at `time`, with one of the secrets. */
  sign(secret: string, time?: number, text?: string): Delivery;
  /** The header with the signature, and malformed values of it. */
  readonly signatureHeader: string;
  readonly malformed: readonly string[];
  /** In ms; undefined where no time is signed or none is checked by default. */
  readonly tolerance: number | undefined;
  readonly takesTolerance: boolean;
  /** The event that is signed, as verified. */
  readonly verified: Readonly<Record<string, unknown>>;
}

const pairs = [generateKeyPairSync("ed25519"), generateKeyPairSync("ed25519")];
const publicKeys = pairs.map(({ publicKey }) =>
  publicKey.export({ format: "der", type: "spki" }).subarray(-32).toString("hex"),
);
const whole = Math.floor(at / 1_000) * 1_000;
const secondsOf = (time: number) => String(Math.floor(time / 1_000));

const senders: Record<string, Sender> = {
  github: {
    make: (secret, options) => github({ secret, ...named(options) }),
    secrets: ["It's a Secret to Everybody", "another secret"],
    badSecrets: [""],
    sign(secret, _time, text = "{}") {
      const signature = `sha256=${hmac(secret, text).digest("hex")}`;
      return { headers: { "x-hub-signature-256": signature, "x-github-delivery": "d-1" }, body: bytes(text) };
    },
    signatureHeader: "x-hub-signature-256",
    malformed: ["sha256=", "0".repeat(64), `sha1=${"0".repeat(64)}`],
    tolerance: undefined,
    takesTolerance: false,
    verified: { id: hash("{}"), deliveryId: "d-1", idSigned: true },
  },
  "standard webhooks": {
    make: (secret, options) => standardWebhooks({ secret, ...options }),
    secrets: ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", `whsec_${Buffer.alloc(32, 7).toString("base64")}`],
    badSecrets: ["", "whsec_", "whsec_short", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n"],
    sign(secret, time = at, text = "{}") {
      const seconds = secondsOf(time);
      const key = Buffer.from(secret.slice(6), "base64");
      const signature = `v1,${hmac(key, `msg_1.${seconds}.${text}`).digest("base64")}`;
      const headers = {
        "webhook-id": "msg_1",
        "webhook-timestamp": seconds,
        "webhook-signature": signature,
      };
      return { headers, body: bytes(text) };
    },
    signatureHeader: "webhook-signature",
    malformed: ["v1,", "v2,AAAA", "x"],
    tolerance: 300_000,
    takesTolerance: true,
    verified: { id: "msg_1", timestamp: whole, idSigned: true },
  },
  stripe: {
    make: (secret, options) => stripe({ secret, ...options }),
    secrets: ["whsec_test_secret", "whsec_8f742231b10e8888"],
    badSecrets: ["", "whsec_", "sk_test_51", "whsec_test_secret\n", " whsec_test_secret"],
    sign(secret, time = at, text = '{"id":"evt_1","object":"event"}') {
      const seconds = secondsOf(time);
      const signature = `t=${seconds},v1=${hmac(secret, `${seconds}.${text}`).digest("hex")}`;
      return { headers: { "stripe-signature": signature }, body: bytes(text) };
    },
    signatureHeader: "stripe-signature",
    malformed: ["t=1763714567", `v1=${"0".repeat(64)}`, `t=x,v1=${"0".repeat(64)}`, "t=1763714567,v1=00"],
    tolerance: 300_000,
    takesTolerance: true,
    verified: { id: "evt_1", timestamp: whole, idSigned: true },
  },
  slack: {
    make: (secret, options) => slack({ secret, ...options }),
    secrets: ["8f742231b10e8888abcd99yyyzzz85a5", "00000000000000000000000000000001"],
    badSecrets: ["", "8f742231b10e8888abcd99yyyzzz85a5\n", "a b"],
    sign(secret, time = at, text = '{"type":"event_callback","event_id":"Ev1"}') {
      const seconds = secondsOf(time);
      const signature = `v0=${hmac(secret, `v0:${seconds}:${text}`).digest("hex")}`;
      const headers = { "x-slack-signature": signature, "x-slack-request-timestamp": seconds };
      return { headers, body: bytes(text) };
    },
    signatureHeader: "x-slack-signature",
    malformed: ["v0=", "0".repeat(64), `v1=${"0".repeat(64)}`, `v0=${"A".repeat(64)}`],
    tolerance: 300_000,
    takesTolerance: true,
    verified: { id: "Ev1", timestamp: whole, idSigned: true },
  },
  shopify: {
    make: (secret, options) => shopify({ secret, topics: ["orders/paid"], ...named(options) }),
    secrets: ["shpss_0123456789abcdef", "shpss_fedcba9876543210"],
    badSecrets: ["", "shpss_0123456789abcdef\n"],
    sign(secret, _time, text = "{}") {
      const headers = {
        "x-shopify-hmac-sha256": hmac(secret, text).digest("base64"),
        "x-shopify-webhook-id": "w-1",
        "x-shopify-topic": "orders/paid",
        "x-shopify-shop-domain": "a.myshopify.com",
      };
      return { headers, body: bytes(text) };
    },
    signatureHeader: "x-shopify-hmac-sha256",
    malformed: ["AAAA", "0".repeat(64), `${"A".repeat(42)}B=`],
    tolerance: undefined,
    takesTolerance: false,
    verified: { id: hash("{}"), deliveryId: "w-1", scope: ["orders/paid"], idSigned: true },
  },
  linear: {
    make: (secret, options) => linear({ secret, ...options }),
    secrets: ["lin_wh_0123456789", "lin_wh_9876543210"],
    badSecrets: ["", "lin_wh_0123456789\r\n"],
    sign(secret, time = at, text = JSON.stringify({ action: "update", webhookTimestamp: time })) {
      const headers = { "linear-signature": hmac(secret, text).digest("hex"), "linear-delivery": "l-1" };
      return { headers, body: bytes(text) };
    },
    signatureHeader: "linear-signature",
    malformed: ["00", "x".repeat(64), `sha256=${"0".repeat(64)}`],
    tolerance: 60_000,
    takesTolerance: true,
    verified: { id: hash('{"action":"update"}'), deliveryId: "l-1", timestamp: at, idSigned: true },
  },
  discord: {
    make: (publicKey, options) => discord({ publicKey, ...options }),
    secrets: [publicKeys[0]!, publicKeys[1]!],
    badSecrets: [
      "",
      ...[62, 63, 65, 66].map((digits) => "0".repeat(digits)),
      "g".repeat(64),
      `${"0".repeat(64)}\n`,
    ],
    sign(publicKey, time = at, text = '{"type":2,"id":"1234567890"}') {
      const { privateKey } = pairs[publicKeys.indexOf(publicKey)]!;
      const seconds = secondsOf(time);
      const signature = signBytes(null, Buffer.from(seconds + text), privateKey).toString("hex");
      const headers = { "x-signature-ed25519": signature, "x-signature-timestamp": seconds };
      return { headers, body: bytes(text) };
    },
    signatureHeader: "x-signature-ed25519",
    malformed: ["00", "0".repeat(64), "A".repeat(128)],
    tolerance: undefined,
    takesTolerance: true,
    verified: { id: "1234567890", timestamp: whole, idSigned: true },
  },
};

function request(headers: Readonly<Record<string, string>>): Request {
  return new Request("https://example.com/hooks", { method: "POST", headers });
}

function verify(provider: WebhookProvider, { headers, body }: Delivery) {
  return provider.verify(request(headers), body);
}

async function refusal(provider: WebhookProvider, delivery: Delivery): Promise<WebhookVerificationError> {
  const error = await verify(provider, delivery).then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(WebhookVerificationError);
  return error as WebhookVerificationError;
}

const now = () => at;

describe.each(Object.entries(senders))("%s", (title, sender) => {
  const [secret, other] = sender.secrets;
  const provider = sender.make(secret, { now });

  it("returns id, time and scope of a genuine delivery", async () => {
    expect(await verify(provider, sender.sign(secret))).toMatchObject(sender.verified);
    // The same from anywhere in a larger buffer.
    const { headers, body } = sender.sign(secret);
    const buffer = new Uint8Array(body.length + 9);
    buffer.set(body, 4);
    const part = buffer.subarray(4, 4 + body.length);
    expect(await verify(provider, { headers, body: part })).toMatchObject(sender.verified);
  });

  it("refuses another secret's signature, and one of another body", async () => {
    expect((await refusal(provider, sender.sign(other))).reason).toBe("bad-signature");
    const { headers, body } = sender.sign(secret);
    const longer = new Uint8Array([...body, 0x20]);
    expect((await refusal(provider, { headers, body: longer })).reason).toBe("bad-signature");
    expect((await refusal(provider, { headers, body: new Uint8Array() })).reason).toBe("bad-signature");
  });

  it("accepts each of several secrets, and no other", async () => {
    const both = sender.make([other, secret], { now });
    for (const one of [secret, other])
      expect(await verify(both, sender.sign(one))).toMatchObject(sender.verified);
    expect((await refusal(sender.make([other], { now }), sender.sign(secret))).reason).toBe("bad-signature");
  });

  it("needs every one of its headers", async () => {
    const { headers, body } = sender.sign(secret);
    for (const absent of Object.keys(headers)) {
      if (hints.test(absent)) continue;
      const { [absent]: _, ...rest } = headers;
      const refused = await refusal(provider, { headers: rest, body });
      expect([absent, refused.reason]).toEqual([absent, "missing-header"]);
      const empty = await refusal(provider, { headers: { ...headers, [absent]: "" }, body });
      expect([absent, empty.reason]).toEqual([absent, "missing-header"]);
    }
  });

  it("refuses malformed signatures, and headers that were sent twice", async () => {
    const { headers, body } = sender.sign(secret);
    for (const text of sender.malformed) {
      const refused = await refusal(provider, {
        headers: { ...headers, [sender.signatureHeader]: text },
        body,
      });
      expect([text, refused.reason]).toEqual([text, "malformed-header"]);
    }
    for (const [header, text] of Object.entries(headers)) {
      // A header that may hold several signatures may be sent twice.
      if (/^(webhook|stripe)-signature$/.test(header) || hints.test(header)) continue;
      const refused = await refusal(provider, {
        headers: { ...headers, [header]: `${text}, ${text}` },
        body,
      });
      expect([header, refused.reason]).toEqual([header, "malformed-header"]);
    }
  });

  it("applies its tolerance in both directions, to the second", async () => {
    const { tolerance } = sender;
    const accepted = async (by: WebhookProvider, time: number) =>
      verify(by, sender.sign(secret, time)).then(
        () => "accepted",
        (error: WebhookVerificationError) => error.reason,
      );
    const far = 10 * 365 * 86_400_000;
    if (tolerance === undefined) {
      for (const time of [at - far, at + far]) expect(await accepted(provider, time)).toBe("accepted");
    } else {
      for (const direction of [-1, 1]) {
        expect(await accepted(provider, at + direction * tolerance)).toBe("accepted");
        for (const beyond of [tolerance + 1_000, far]) {
          expect(await accepted(provider, at + direction * beyond)).toBe("outside-tolerance");
        }
      }
    }
    if (!sender.takesTolerance) return;
    const strict = sender.make(secret, { now, tolerance: 10_000 });
    for (const direction of [-1, 1]) {
      expect(await accepted(strict, at + direction * 10_000)).toBe("accepted");
      expect(await accepted(strict, at + direction * 11_000)).toBe("outside-tolerance");
    }
    const broken = sender.make(secret, { now: () => Number.NaN, tolerance: 10_000 });
    expect(await accepted(broken, at)).toBe("outside-tolerance");
  });

  it("uses the platform's clock unless another is given", async () => {
    vi.useFakeTimers({ toFake: ["Date"], now: at });
    try {
      const options = sender.takesTolerance ? { tolerance: 10_000 } : {};
      const by = sender.make(secret, options);
      expect(await verify(by, sender.sign(secret))).toMatchObject(sender.verified);
      if (!sender.takesTolerance) return;
      vi.setSystemTime(at + 11_000);
      expect((await refusal(by, sender.sign(secret))).reason).toBe("outside-tolerance");
    } finally {
      vi.useRealTimers();
    }
  });

  it("has neither secrets nor anything that was sent in its errors", async () => {
    const { headers, body } = sender.sign(other, at, '{"card":"4242424242424242"}');
    const signed = Object.values(headers).filter((value) => value.length > 20);
    const broken = { ...headers, [sender.signatureHeader]: "leaked" };
    for (const delivery of [
      { headers, body },
      { headers: broken, body },
    ]) {
      const error = await refusal(provider, delivery);
      const said = JSON.stringify({ ...error, message: error.message, stack: error.stack });
      for (const hidden of [secret, other, "4242", "leaked", ...signed]) expect(said).not.toContain(hidden);
      expect(isRedlockError(error)).toBe(true);
      expect(error).toMatchObject({ code: "WEBHOOK_INVALID", provider: provider.name });
    }
  });

  it("refuses a malformed secret at set-up, without repeating it", () => {
    for (const bad of sender.badSecrets) {
      for (const given of [bad, [secret, bad]]) {
        const make = () => sender.make(given);
        expect(make, JSON.stringify(bad)).toThrow(TypeError);
        expect(make).toThrow(/^(secret|publicKey) /);
        if (bad.length > 6) expect(make).not.toThrow(bad.trim());
        expect(make).not.toThrow(secret);
      }
    }
    for (const bad of [undefined, null, [], [secret, undefined], [[secret]], 42, {}]) {
      expect(() => sender.make(bad as string), JSON.stringify(bad)).toThrow(TypeError);
      expect(() => sender.make(bad as string)).toThrow(/^(secret|publicKey) /);
    }
  });

  it("refuses invalid options at set-up", () => {
    for (const name of ["", 5 as unknown as string]) {
      expect(() => sender.make(secret, { name })).toThrow(TypeError);
      expect(() => sender.make(secret, { name })).toThrow(/^name /);
    }
    if (!sender.takesTolerance) return;
    for (const tolerance of [999, -1, 1_000.5, Number.NaN, Number.POSITIVE_INFINITY]) {
      expect(() => sender.make(secret, { tolerance })).toThrow(
        new RangeError(`tolerance must be an integer of at least 1000 ms, not ${tolerance}`),
      );
    }
    expect(() => sender.make(secret, { now: 5 as unknown as () => number })).toThrow(TypeError);
  });

  it("accepts a name", () => {
    expect(sender.make(secret).name).toBe(title.replace(" ", "-"));
    expect(sender.make(secret, { name: "billing" }).name).toBe("billing");
  });

  it("tells senders apart by their secrets, unless it has a name", async () => {
    const { secretTags } = await verify(provider, sender.sign(secret));
    expect(secretTags).toHaveLength(1);
    const named = await verify(sender.make(secret, { now, name: "billing" }), sender.sign(secret));
    expect(named).not.toHaveProperty("secretTags");
    expect({ ...named, secretTags }).toStrictEqual({ ...sender.verified, secretTags });
  });

  it("does not read the request's body, and requires bytes", async () => {
    const { headers, body } = sender.sign(secret);
    const from = new Request("https://example.com/hooks", { method: "POST", headers, body });
    await provider.verify(from, body);
    expect(from.bodyUsed).toBe(false);
    const text = new TextDecoder().decode(body) as unknown as Uint8Array;
    await expect(provider.verify(from, text)).rejects.toThrow(TypeError);
  });

  it("imports its keys once, with the first delivery, and parses only signed bodies", async () => {
    const importKey = vi.spyOn(crypto.subtle, "importKey");
    const parse = vi.spyOn(JSON, "parse");
    try {
      const by = sender.make([secret, other], { now });
      expect(importKey).not.toHaveBeenCalled();
      await verify(by, sender.sign(other));
      await verify(by, sender.sign(other));
      // Once to verify, once to tag.
      expect(importKey).toHaveBeenCalledTimes(4);
      const keys = await Promise.all(importKey.mock.results.map(({ value }) => value as Promise<CryptoKey>));
      // A public key may be exported; a secret may not.
      for (const key of keys) expect([key.type, key.extractable]).not.toEqual(["secret", true]);
      parse.mockClear();
      const { headers } = sender.sign(secret);
      await refusal(by, { headers, body: bytes('{"id":"forged"}') });
      expect(parse).not.toHaveBeenCalled();
    } finally {
      importKey.mockRestore();
      parse.mockRestore();
    }
  });
});
