import { describe, expect, it, vi } from "vitest";
import { isRedlockError } from "../../../src/errors.ts";
import { type WebhookProvider, WebhookVerificationError } from "../../../src/webhooks/index.ts";
import { at, bytes, type Delivery, leastOptions, makerOf, url } from "./sender.ts";
import { senders } from "./senders.ts";

// What all providers have in common. What is specific to one is tested in its own file.

/** Headers that are reported, but on which no decision depends. */
const hints =
  /^(x-github-delivery|x-shopify-webhook-id|linear-delivery|x-zm-trackingid|i-twilio-idempotency-token)$/;

function request(headers: Readonly<Record<string, string>>): Request {
  return new Request(url, { method: "POST", headers });
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
      if (/^(webhook|stripe|paddle)-signature$/.test(header) || hints.test(header)) continue;
      const refused = await refusal(provider, {
        headers: { ...headers, [header]: `${text}, ${text}` },
        body,
      });
      expect([header, refused.reason]).toEqual([header, "malformed-header"]);
    }
  });

  it("applies its tolerance in both directions, to the second", async () => {
    const { tolerance, lifetime = 0 } = sender;
    const accepted = async (by: WebhookProvider, time: number) =>
      verify(by, sender.sign(secret, time)).then(
        () => "accepted",
        (error: WebhookVerificationError) => error.reason,
      );
    const far = 10 * 365 * 86_400_000;
    if (tolerance === undefined) {
      for (const time of [at - far, at + far]) expect(await accepted(provider, time)).toBe("accepted");
    } else {
      for (const [direction, limit] of [
        [-1, lifetime + tolerance],
        [1, tolerance],
      ] as const) {
        expect(await accepted(provider, at + direction * limit)).toBe("accepted");
        for (const beyond of [limit + 1_000, far]) {
          expect(await accepted(provider, at + direction * beyond)).toBe("outside-tolerance");
        }
      }
    }
    if (!sender.takesTolerance) return;
    const strict = sender.make(secret, { now, tolerance: 20_000 });
    for (const [direction, limit] of [
      [-1, lifetime + 20_000],
      [1, 20_000],
    ] as const) {
      expect(await accepted(strict, at + direction * limit)).toBe("accepted");
      expect(await accepted(strict, at + direction * (limit + 1_000))).toBe("outside-tolerance");
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
      vi.setSystemTime(at + (sender.lifetime ?? 0) + 11_000);
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

  it("refuses an empty name, and a misspelt option, at set-up", () => {
    expect(() => sender.make(secret, { name: "" })).toThrow(/^name /);
    const misspelt = () => makerOf(title)({ ...leastOptions(title, sender), tolerence: 1_000 });
    expect(misspelt).toThrow(/ has no option "tolerence"; (there are|did you mean) /);
  });

  it("tells senders apart by their secrets, unless it has a name", async () => {
    const { secretTags } = await verify(provider, sender.sign(secret));
    expect(secretTags).toHaveLength(1);
    expect(provider.name).toBe(title.replace(" ", "-"));
    const named = await verify(sender.make(secret, { now, name: "billing" }), sender.sign(secret));
    expect(named).not.toHaveProperty("secretTags");
    expect({ ...named, secretTags }).toStrictEqual({ ...sender.verified, secretTags });
  });

  it("does not read the request's body", async () => {
    const { headers, body } = sender.sign(secret);
    const from = new Request(url, { method: "POST", headers, body });
    await provider.verify(from, body);
    expect(from.bodyUsed).toBe(false);
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
      // A JWT is signed by itself: it may have been parsed, but not the body.
      expect(JSON.stringify(parse.mock.calls)).not.toContain("forged");
    } finally {
      importKey.mockRestore();
      parse.mockRestore();
    }
  });
});
