import { createHmac, generateKeyPairSync, type KeyObject, sign as signBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import {
  bodyId,
  decodeBase64,
  decodeBase64Url,
  decodeDer,
  encodeBytes,
  requireHeader,
  requireSignature,
  type SignatureAlgorithm,
  type SignatureProviderOptions,
  type SignedRequest,
  signatureCheck,
  signatureProvider,
} from "../../../src/webhooks/custom/index.ts";
import { secretTag, WebhookVerificationError } from "../../../src/webhooks/index.ts";
import { outcome } from "./outcome.ts";
import { bytes, hash } from "./sender.ts";

const seconds = 1_763_714_567;
const at = seconds * 1_000;
const body = '{"event_id":"evt-1"}';
const digest = (text: string) => createHmac("sha256", "hush").update(text).digest("base64");

/** The options of a sender that signs `more` and the body. */
const signing = (more: string, given: Partial<SignedRequest> = {}): SignatureProviderOptions => ({
  name: "acme",
  algorithm: "HMAC-SHA256",
  key: "hush",
  tagSecrets: false,
  now: () => at,
  read: (request, content) => ({
    signatures: requireSignature("acme", request, "acme-signature", { decode: decodeBase64 }),
    signed: [more, content],
    ...given,
  }),
});
const verify = (options: SignatureProviderOptions, signed: string, text = body) =>
  outcome(signatureProvider(options), { headers: { "acme-signature": digest(signed) }, body: text });

describe("signatureProvider", () => {
  it("has the body's hash as id, and no time, unless it is told", async () => {
    expect(await verify(signing("a"), `a${body}`)).toEqual({ id: hash(body), idSigned: true });
    expect(await verify(signing("a"), body)).toBe("bad-signature");
    expect(await verify(signing(""), "", "")).toEqual({ id: hash(""), idSigned: true });
  });

  it("returns what was read", async () => {
    const given = { id: "i-1", idSigned: false, scope: ["s"], deliveryId: "d-1", timestamp: at - 300_000 };
    expect(await verify(signing("", given), body)).toEqual(given);
    expect(await verify({ ...signing("", given), tagSecrets: undefined }, body)).toEqual({
      ...given,
      secretTags: [await secretTag("hush")],
    });
  });

  it("opens only what was signed, and lets it replace what was read", async () => {
    let opened = 0;
    const open = async () => {
      opened += 1;
      return { id: await bodyId(bytes(body), "event_id"), timestamp: at };
    };
    const options = signing("", { id: "i-1", timestamp: at - 1_000, open });
    expect(await verify(options, "forged")).toBe("bad-signature");
    expect(opened).toBe(0);
    expect(await verify(options, body)).toEqual({ id: "evt-1", timestamp: at, idSigned: true });
    expect(await verify(signing("", { id: "i-1", open: () => ({}) }), body)).toMatchObject({ id: "i-1" });
    const refuse = () => {
      throw new WebhookVerificationError("acme", "bad-signature", "no");
    };
    expect(await verify(signing("", { open: refuse }), body)).toBe("bad-signature");
  });

  it("compares times in the headers before the signature, and signed ones after it", async () => {
    expect(await verify(signing("", { timestamp: at - 301_000 }), "forged")).toBe("outside-tolerance");
    expect(await verify(signing("", { open: () => ({ timestamp: at - 301_000 }) }), "forged")).toBe(
      "bad-signature",
    );
    expect(await verify(signing("", { open: () => ({ timestamp: at - 301_000 }) }), body)).toBe(
      "outside-tolerance",
    );
    expect(await verify(signing("", { timestamp: Number.NaN }), body)).toBe("outside-tolerance");
    expect(await verify(signing("", { expires: at + 1_000 }), body)).toBe("outside-tolerance");
    const strict = { ...signing("", { timestamp: at - 2_000 }), tolerance: 1_000 };
    expect(await verify(strict, body)).toBe("outside-tolerance");
  });

  it("refuses an id that cannot be one", async () => {
    for (const id of ["", "a b", "é", "x".repeat(256)]) {
      expect(await verify(signing("", { id }), body)).toBe("malformed-header");
      expect(await verify(signing("", { open: () => ({ id }) }), body)).toBe("malformed-header");
    }
  });

  const pairs = {
    Ed25519: () => generateKeyPairSync("ed25519"),
    "ECDSA-P256-SHA256": () => generateKeyPairSync("ec", { namedCurve: "P-256" }),
    "RSA-SHA256": () => generateKeyPairSync("rsa", { modulusLength: 1_024 }),
  };

  it.each(Object.entries(pairs))(
    "accepts signatures of %s, by each of several keys",
    async (title, generate) => {
      const algorithm = title as SignatureAlgorithm;
      const [first, second, third] = [generate(), generate(), generate()];
      const spki = ({ publicKey }: { publicKey: KeyObject }) =>
        new Uint8Array(publicKey.export({ format: "der", type: "spki" }));
      const decode = (text: string) =>
        algorithm.startsWith("ECDSA") ? decodeDer(decodeBase64(text)) : decodeBase64(text);
      const provider = signatureProvider({
        name: "acme",
        algorithm,
        key: [spki(first), spki(second)],
        read: (request, content) => ({
          signatures: requireSignature("acme", request, "acme-signature", { decode }),
          signed: content,
        }),
      });
      const by = ({ privateKey }: { privateKey: KeyObject }, text = body) => {
        const made = signBytes(title === "Ed25519" ? null : "sha256", Buffer.from(text), privateKey);
        return { headers: { "acme-signature": made.toString("base64") }, body };
      };
      for (const pair of [first, second]) {
        expect(await outcome(provider, by(pair))).toMatchObject({ id: hash(body), idSigned: true });
      }
      expect(await outcome(provider, by(third))).toBe("bad-signature");
      expect(await outcome(provider, by(first, "other"))).toBe("bad-signature");
      for (const garbage of ["", "AAAA", "x"]) {
        const refused = await outcome(provider, { headers: { "acme-signature": garbage }, body });
        expect(refused).toMatch(/^(missing-header|malformed-header|bad-signature)$/);
      }
    },
  );
});

describe("set-up of signatureProvider", () => {
  const make = (given: object) => () =>
    signatureProvider({ ...signing(""), ...given } as SignatureProviderOptions);

  it.each([
    ["no options", null, /^signatureProvider needs an object/],
    ["no name", { name: "" }, /^name (must|is missing)/],
    ["no algorithm", { algorithm: undefined }, /^algorithm must be one of HMAC-SHA1, /],
    ["a name of every object", { algorithm: "toString" }, /^algorithm must be one of/],
    ["no key", { key: undefined }, /^key must be a string or a Uint8Array/],
    ["an empty key", { key: ["fine", ""] }, /^key must/],
    [
      "a public key as text",
      { algorithm: "Ed25519", key: "abc" },
      /^key must be a Uint8Array, as decodePublicKey returns it, /,
    ],
    ["another algorithm", { algorithm: "HS256" }, /^algorithm must be one of HMAC-SHA1, /],
    ["a switch that is no boolean", { tagSecrets: 1 }, /^tagSecrets must/],
    ["no reader", { read: undefined }, /^read is missing/],
    ["a misspelt option", { secret: "s" }, /^signatureProvider has no option "secret"/],
  ])("throws a TypeError for %s", (_, given, message) => {
    const set =
      given === null ? () => signatureProvider(null as unknown as SignatureProviderOptions) : make(given);
    expect(set).toThrow(TypeError);
    expect(set).toThrow(message);
  });

  it("throws a RangeError for a tolerance that is out of range, and repeats no key", () => {
    expect(make({ tolerance: 1 })).toThrow(RangeError);
    expect(make({ key: ["s3cret-value", 5] })).not.toThrow(/s3cret-value/);
  });

  it("cannot check the key's own form before the first delivery, and is a TypeError then", async () => {
    const provider = signatureProvider({
      ...signing(""),
      algorithm: "RSA-SHA256",
      key: Uint8Array.of(1, 2, 3),
    });
    const failed = outcome(provider, { headers: { "acme-signature": "AAAA" }, body });
    await expect(failed).rejects.toThrow(/^a key cannot be used for RSA-SHA256/);
    await expect(failed).rejects.toThrow(TypeError);
  });
});

describe("the building blocks", () => {
  it("write and read bytes in each encoding", () => {
    for (const given of [
      [],
      [0],
      [255, 254, 253],
      [251, 239],
      Array.from({ length: 256 }, (_, byte) => byte),
    ]) {
      const all = Uint8Array.from(given);
      for (const encoding of ["hex", "base64", "base64url"] as const) {
        expect(encodeBytes(all, encoding)).toBe(Buffer.from(all).toString(encoding));
      }
      expect(decodeBase64Url(encodeBytes(all, "base64url"))).toEqual(all);
    }
    for (const text of ["A", "AB", "AA==", "A+", "A/", "AA\n", " AA", "AAA="]) {
      expect(decodeBase64Url(text), text).toBeUndefined();
    }
  });

  it("read headers and signatures", () => {
    const request = new Request("https://a", { headers: { a: "v1=AAAA" } });
    expect(requireHeader("acme", request, "a")).toBe("v1=AAAA");
    const form = { prefix: "v1=", decode: decodeBase64 };
    expect(requireSignature("acme", request, "a", form)).toEqual([new Uint8Array(3)]);
    expect(requireSignature("acme", request, "a", { ...form, length: 3 })).toHaveLength(1);
    for (const other of [
      { ...form, length: 4 },
      { ...form, prefix: "v2=" },
      { ...form, prefix: "v1=AAAA" },
    ]) {
      expect(() => requireSignature("acme", request, "a", other)).toThrow(/is not one signature/);
    }
  });

  it("check Ed25519 keys as 32 bytes and as SPKI", async () => {
    const { publicKey, privateKey } = generateKeyPairSync("ed25519");
    const spki = new Uint8Array(publicKey.export({ format: "der", type: "spki" }));
    const made = new Uint8Array(signBytes(null, Buffer.from(body), privateKey));
    for (const key of [spki, spki.subarray(-32)]) {
      expect(await signatureCheck("Ed25519", [key])([made], bytes(body))).toBe(true);
      expect(await signatureCheck("Ed25519", [key])([made.subarray(1)], bytes(body))).toBe(false);
    }
  });
});
