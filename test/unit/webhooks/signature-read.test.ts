import { describe, expect, it } from "vitest";
import {
  bodyId,
  decodeBase64,
  requireSignature,
  type SignatureProviderOptions,
  type SignedRequest,
  signatureProvider,
} from "../../../src/webhooks/custom/index.ts";
import { secretTag, WebhookVerificationError } from "../../../src/webhooks/index.ts";
import { bytes, hash, hmac, outcome } from "./outcome.ts";

const at = 1_763_714_567_000;
const body = '{"event_id":"evt-1"}';

/** The options of a sender that signs a text and the body. */
const signing = (text: string, given: Partial<SignedRequest> = {}): SignatureProviderOptions => ({
  name: "acme",
  algorithm: "HMAC-SHA256",
  key: "hush",
  tagSecrets: false,
  now: () => at,
  read: (request, content) => ({
    signatures: requireSignature("acme", request, "acme-signature", { decode: decodeBase64 }),
    signed: [text, content],
    ...given,
  }),
});
const send = (options: SignatureProviderOptions, signed: string, text = body) =>
  outcome(signatureProvider(options), {
    headers: { "acme-signature": hmac("hush", signed, "base64") },
    body: text,
  });

describe("signatureProvider with read", () => {
  it("has the body's hash as id, and no time, unless it is told", async () => {
    expect(await send(signing("a"), `a${body}`)).toEqual({ id: hash(body), idSigned: true });
    expect(await send(signing("a"), body)).toBe("bad-signature");
    expect(await send(signing(""), "", "")).toEqual({ id: hash(""), idSigned: true });
    for (const signed of ["text", bytes("text"), ["te", bytes("xt")]]) {
      expect(await send(signing("", { signed }), "text")).toMatchObject({ idSigned: true });
    }
  });

  it("returns what was read", async () => {
    const given = { id: "i-1", idSigned: false, scope: ["s"], deliveryId: "d-1", timestamp: at - 300_000 };
    expect(await send(signing("", given), body)).toEqual(given);
    const tagged = { ...signing("", given), tagSecrets: undefined };
    expect(await send(tagged, body)).toEqual({ ...given, secretTags: [await secretTag("hush")] });
  });

  it("opens only what was signed, and lets it replace what was read", async () => {
    let opened = 0;
    const open = async () => {
      opened += 1;
      return { id: await bodyId(bytes(body), "event_id"), timestamp: at };
    };
    const options = signing("", { id: "i-1", timestamp: at - 1_000, open });
    expect(await send(options, "forged")).toBe("bad-signature");
    expect(opened).toBe(0);
    expect(await send(options, body)).toEqual({ id: "evt-1", timestamp: at, idSigned: true });
    expect(await send(signing("", { id: "i-1", open: () => ({}) }), body)).toMatchObject({ id: "i-1" });
    const refuse = () => {
      throw new WebhookVerificationError("acme", "bad-signature", "no");
    };
    expect(await send(signing("", { open: refuse }), body)).toBe("bad-signature");
  });

  it("compares times in the headers before the signature, and signed ones after it", async () => {
    const old = { timestamp: at - 301_000 };
    expect(await send(signing("", old), "forged")).toBe("outside-tolerance");
    expect(await send(signing("", { open: () => old }), "forged")).toBe("bad-signature");
    expect(await send(signing("", { open: () => old }), body)).toBe("outside-tolerance");
    for (const given of [{ timestamp: Number.NaN }, { expires: at + 1_000 }]) {
      expect(await send(signing("", given), body)).toBe("outside-tolerance");
    }
    const strict = { ...signing("", { timestamp: at - 2_000 }), tolerance: 1_000 };
    expect(await send(strict, body)).toBe("outside-tolerance");
  });

  it("refuses an id that cannot be one", async () => {
    for (const id of ["", "a b", "é", "x".repeat(256)]) {
      expect(await send(signing("", { id }), body)).toBe("malformed-header");
      expect(await send(signing("", { open: () => ({ id }) }), body)).toBe("malformed-header");
    }
  });
});

it("cannot check the key's own form before the first delivery, and is a TypeError then", async () => {
  const failed = send({ ...signing(""), algorithm: "RSA-SHA256", key: Uint8Array.of(1, 2, 3) }, body);
  await expect(failed).rejects.toThrow(/^a key cannot be used for RSA-SHA256/);
  await expect(failed).rejects.toThrow(TypeError);
});
