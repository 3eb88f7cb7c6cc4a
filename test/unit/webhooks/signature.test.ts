import { generateKeyPairSync, sign as signBytes } from "node:crypto";
import { afterEach, describe, expect, it, vi } from "vitest";
import { signatureCheck } from "../../../src/webhooks/custom/index.ts";
import { standardWebhooks, stripe } from "../../../src/webhooks/index.ts";
import { outcome } from "./outcome.ts";

// What a forged request may cost: every operation is a pass over the whole body.

afterEach(() => vi.restoreAllMocks());

const seconds = 1_763_714_567;
const now = () => seconds * 1_000;

/** The passes over the body, by operation. */
function watchPasses() {
  const [sign, verify] = [vi.spyOn(crypto.subtle, "sign"), vi.spyOn(crypto.subtle, "verify")];
  return () => [sign.mock.calls.length, verify.mock.calls.length];
}

/** An Ed25519 key, and its signature of a text. */
function ed25519(text: string) {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const key = new Uint8Array(publicKey.export({ type: "spki", format: "der" })).subarray(-32);
  return { key, signature: new Uint8Array(signBytes(null, Buffer.from(text), privateKey)) };
}

it("imports no key for no signature: a platform may lack the scheme that the sender did not use", async () => {
  const importKey = vi.spyOn(crypto.subtle, "importKey");
  const check = signatureCheck("Ed25519", [new Uint8Array(32)]);
  expect(await check([], new Uint8Array(1))).toBe(false);
  expect(importKey).not.toHaveBeenCalled();
});

describe("the cost of a request with wrong signatures", () => {
  it("is one pass for each secret, however many signatures there are", async () => {
    const passes = watchPasses();
    const provider = stripe({ secret: ["whsec_a", "whsec_b"], name: "stripe", now });
    const signatures = Array.from({ length: 15 }, (_, index) => `v1=${String(index).padStart(64, "0")}`);
    const headers = { "stripe-signature": [`t=${seconds}`, ...signatures].join(",") };
    expect(await outcome(provider, { headers, body: "{}" })).toBe("bad-signature");
    expect(passes()).toEqual([2, 0]);
  });

  it("is at most four passes for each public key, and none where there are more signatures", async () => {
    const passes = watchPasses();
    const { key, signature } = ed25519("body");
    const check = signatureCheck("Ed25519", [key]);
    const wrong = Array.from({ length: 3 }, () => new Uint8Array(64));
    expect(await check([...wrong, signature], new TextEncoder().encode("body"))).toBe(true);
    expect(passes()).toEqual([0, 4]);
    expect(await check([...wrong, ...wrong, signature], new TextEncoder().encode("body"))).toBe(false);
    expect(passes()).toEqual([0, 4]);
  });

  it("is bounded for standard webhooks, whose header may have both kinds", async () => {
    const passes = watchPasses();
    const signed = `m1.${seconds}.{}`;
    const { key, signature } = ed25519(signed);
    const provider = standardWebhooks({
      secret: Buffer.alloc(24).toString("base64"),
      publicKey: Buffer.from(key).toString("base64"),
      name: "standard",
      now,
    });
    const text = (bytes: Uint8Array) => Buffer.from(bytes).toString("base64");
    const send = (v1: number, v1a: number) =>
      outcome(provider, {
        headers: {
          "webhook-id": "m1",
          "webhook-timestamp": String(seconds),
          "webhook-signature": [
            ...Array<string>(v1).fill(`v1,${text(new Uint8Array(32))}`),
            ...Array<string>(v1a - 1).fill(`v1a,${text(new Uint8Array(64))}`),
            `v1a,${text(signature)}`,
          ].join(" "),
        },
        body: "{}",
      });
    expect(await send(12, 4)).toMatchObject({ id: "m1" });
    expect(passes()).toEqual([1, 4]);
    expect(await send(0, 5)).toBe("bad-signature");
    expect(passes()).toEqual([1, 4]);
  });
});
