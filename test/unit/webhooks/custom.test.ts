import { generateKeyPairSync, sign as signBytes } from "node:crypto";
import { afterEach, describe, expect, it, test, vi } from "vitest";
import {
  bodyHash,
  bodyId,
  decodeBase64,
  requireId,
  requireSignature,
  type SignatureProviderOptions,
  type SignedRequest,
  signatureCheck,
  signatureProvider,
} from "../../../src/webhooks/custom/index.ts";
import {
  secretTag,
  standardWebhooks,
  stripe,
  WebhookVerificationError,
} from "../../../src/webhooks/index.ts";
import { bytes, hash, hmac, outcome } from "./outcome.ts";

// Senders of your own, by signatureProvider. That one in each encoding is verified: test/unit/testing.

afterEach(() => vi.restoreAllMocks());

const seconds = 1_763_714_567;
const at = seconds * 1_000;
const now = () => at;
const body = '{"event_id":"evt-1"}';
const common = { name: "acme", algorithm: "HMAC-SHA256", key: "hush", tagSecrets: false } as const;
const sign = (text: string) => hmac("hush", text);

describe("a sender whose signature is in a header", () => {
  const withHeader = { ...common, header: "acme-signature" };
  const send = (options: Partial<SignatureProviderOptions>, headers: Record<string, string>, text = body) =>
    outcome(signatureProvider({ ...withHeader, ...options } as SignatureProviderOptions), {
      headers,
      body: text,
    });

  it("needs no more than a name, an algorithm, a key and a header", async () => {
    const headers = { "acme-signature": sign(body) };
    const verified = { id: hash(body), idSigned: true };
    expect(await send({}, headers)).toEqual(verified);
    const secretTags = [await secretTag("hush")];
    expect(await send({ tagSecrets: undefined }, headers)).toEqual({ ...verified, secretTags });
    expect(await send({}, { "acme-signature": sign("other") })).toBe("bad-signature");
    expect(await send({}, {})).toBe("missing-header");
  });

  it("may sign the time in a field of the body, which is left out of the id", async () => {
    // A sender may cut the fraction of a second.
    const own = { now: () => at + 999, tolerance: 5_000 };
    const options = { ...own, time: { field: "sent" }, id: { field: "event_id" } };
    const sent = (text: string) => send(options, { "acme-signature": sign(text) }, text);
    expect(await sent(`{"n":1,"sent":${at - 5_000}}`)).toEqual({
      id: hash('{"n":1}'),
      timestamp: at - 5_000,
      idSigned: true,
    });
    expect(await sent(`{"event_id":"evt-1","sent":${at}}`)).toMatchObject({ id: "evt-1" });
    // As numbers of JavaScript, both are the same.
    const [one, other] = [
      await sent(`{"n":9007199254740992,"sent":${at}}`),
      await sent(`{"n":9007199254740993,"sent":${at}}`),
    ];
    expect(one).not.toEqual(other);
    // Of two, readers differ in which one they take.
    const wrong = [
      `{"sent":${at - 6_000}}`,
      "{}",
      `{"sent":"${at}"}`,
      `{"sent":${at - 86_400_000},"sent":${at}}`,
    ];
    for (const text of wrong) expect(await sent(text), text).toBe("outside-tolerance");
  });

  it("has a scope that is read once the signature holds, and that may refuse the delivery", async () => {
    const scope = (request: Request) => [requireId("acme", request, "acme-account")];
    const headers = { "acme-account": "a1", "acme-signature": sign(body) };
    expect(await send({ scope }, headers)).toMatchObject({ scope: ["a1"] });
    expect(await send({ scope }, { "acme-signature": sign(body) })).toBe("missing-header");
    expect(await send({ scope }, { "acme-signature": sign("other") })).toBe("bad-signature");
    for (const bad of [undefined, [], [""]]) {
      await expect(send({ scope: () => bad as string[] }, headers)).rejects.toThrow(/^scope /);
    }
  });

  it("has no place that is undefined: no time is believed that is not signed", () => {
    const set = (options: object) => () => signatureProvider({ ...withHeader, ...options });
    expect(set({ time: { header: "acme-time", field: undefined } })).toThrow(
      /^signedText must contain \{time\}/,
    );
    const id = { header: undefined, field: "event_id" };
    expect(set({ id, signedText: "{id}.{body}" })).toThrow(/id must name a header/);
  });
});

describe("a sender whose signature is read by code", () => {
  const send = (
    given: Partial<SignedRequest>,
    signed: string,
    options: Partial<SignatureProviderOptions> = {},
  ) => {
    const read = (request: Request, content: Uint8Array) => ({
      signatures: requireSignature("acme", request, "acme-signature", { decode: decodeBase64 }),
      signed: content,
      ...given,
    });
    const by = signatureProvider({ ...common, now, read, ...options } as SignatureProviderOptions);
    return outcome(by, { headers: { "acme-signature": hmac("hush", signed, "base64") }, body });
  };

  it("has what was read, and by default the body's hash as id and no time", async () => {
    for (const signed of [body, bytes(body), ['{"event_id":', bytes('"evt-1"}')]]) {
      expect(await send({ signed }, body)).toEqual({ id: hash(body), idSigned: true });
    }
    expect(await send({ signed: ["a", bytes(body)] }, body)).toBe("bad-signature");
    const given = { id: "i-1", idSigned: false, scope: ["s"], deliveryId: "d-1", timestamp: at - 300_000 };
    expect(await send(given, body)).toEqual(given);
    const secretTags = [await secretTag("hush")];
    expect(await send(given, body, { tagSecrets: undefined })).toEqual({ ...given, secretTags });
  });

  it("opens only what was signed, which replaces what was read", async () => {
    const open = vi.fn(async () => ({ id: "evt-1", timestamp: at }));
    const given = { id: "i-1", timestamp: at - 1_000, open };
    expect(await send(given, "forged")).toBe("bad-signature");
    expect(open).not.toHaveBeenCalled();
    expect(await send(given, body)).toEqual({ id: "evt-1", timestamp: at, idSigned: true });
    const refuse = () => {
      throw new WebhookVerificationError("acme", "bad-signature", "no");
    };
    expect(await send({ open: refuse }, body)).toBe("bad-signature");
  });

  it("is refused with a time or an id that cannot be one, wherever they were read", async () => {
    for (const [given, reason] of [
      [{ timestamp: at - 301_000 }, "outside-tolerance"],
      [{ timestamp: Number.NaN }, "outside-tolerance"],
      [{ expires: at + 1_000 }, "outside-tolerance"],
      [{ id: "a b" }, "malformed-header"],
      [{ id: "x".repeat(256) }, "malformed-header"],
    ] as const) {
      expect(await send(given, body), JSON.stringify(given)).toBe(reason);
      expect(await send({ open: () => given }, body), JSON.stringify(given)).toBe(reason);
    }
  });
});

test.each<[text: string, id: string]>([
  ['{"event_id":"x"}', "x"],
  [`{"event_id":"${"~".repeat(255)}","more":1}`, "~".repeat(255)],
  ...["{}", '{"event_id":5}', '{"event_id":"é"}', "null", "event_id=1", ""].map((text): [string, string] => [
    text,
    hash(text),
  ]),
])("the id in a field of the body %s is that, or the body's hash", async (text, id) => {
  expect(await bodyId(bytes(text), "event_id")).toBe(id);
  expect(await bodyHash(bytes(`x${text}x`).subarray(1, -1))).toBe(hash(text));
});

test("the tag of a secret never changes: it is part of the keys of deliveries that were handled before", async () => {
  const tag = (secret: string | Uint8Array) => hmac(secret, "redlock-edge: scope of a secret").slice(0, 32);
  for (const secret of ["żółć", Uint8Array.of(0, 255)]) expect(await secretTag(secret)).toBe(tag(secret));
  expect(await secretTag("one")).toBe("d3dff88fb95ab9e15c27b395f87363a0");
});

test("a check without keys is refused", () => {
  for (const keys of [[], [""], ["fine", new Uint8Array()]]) {
    expect(() => signatureCheck("HMAC-SHA256", keys)).toThrow(
      "keys must not be empty (is the variable set?)",
    );
  }
});

// Anyone can send what no key has signed, and each operation is a pass over the whole body.
describe("a forged delivery costs", () => {
  /** The imports of keys and the passes over the body, by operation. */
  function watchCrypto() {
    const spies = (["importKey", "sign", "verify"] as const).map((name) => vi.spyOn(crypto.subtle, name));
    return () => spies.map(({ mock }) => mock.calls.length);
  }

  it("no decoding of a header that is too long to be a signature", () => {
    const decode = vi.fn(decodeBase64);
    const request = new Request("https://a.example", { headers: { signature: "A".repeat(120_000) } });
    expect(() => requireSignature("acme", request, "signature", { decode })).toThrow(
      WebhookVerificationError,
    );
    expect(decode).not.toHaveBeenCalled();
  });

  it("one pass for each secret, however many signatures there are", async () => {
    const costs = watchCrypto();
    const provider = stripe({ secret: ["whsec_a", "whsec_b"], name: "stripe", now });
    const signatures = (count: number) =>
      Array.from({ length: count }, (_, index) => `v1=${String(index).padStart(64, "0")}`);
    const send = (count: number) =>
      outcome(provider, {
        headers: { "stripe-signature": [`t=${seconds}`, ...signatures(count)].join(",") },
        body: "{}",
      });
    expect(await send(16)).toBe("malformed-header");
    expect(await send(15)).toBe("bad-signature");
    expect(costs()).toEqual([2, 2, 0]);
  });

  it("four passes for each public key, and nothing where nothing is signed by its scheme", async () => {
    const { publicKey, privateKey } = generateKeyPairSync("ed25519");
    const key = publicKey.export({ type: "spki", format: "der" }).subarray(-32).toString("base64");
    const genuine = signBytes(null, Buffer.from(`m1.${seconds}.{}`), privateKey).toString("base64");
    const base64 = (length: number) => Buffer.alloc(length).toString("base64");
    const costs = watchCrypto();
    const provider = standardWebhooks({ secret: base64(24), publicKey: key, name: "n", now });
    const send = (...signatures: string[]) => {
      const headers = { "webhook-id": "m1", "webhook-timestamp": `${seconds}` };
      return outcome(provider, {
        headers: { ...headers, "webhook-signature": signatures.join(" ") },
        body: "{}",
      });
    };
    const wrong = (count: number) => Array<string>(count).fill(`v1a,${base64(64)}`);
    // A platform may lack the scheme that its sender does not use.
    expect(await send(`v1,${base64(32)}`)).toBe("bad-signature");
    expect(costs()).toEqual([1, 1, 0]);
    expect(await send(...wrong(3), `v1a,${genuine}`)).toMatchObject({ id: "m1" });
    expect(costs()).toEqual([2, 1, 4]);
    expect(await send(...wrong(4), `v1a,${genuine}`)).toBe("bad-signature");
    expect(costs()).toEqual([2, 1, 4]);
  });
});
