import { generateKeyPairSync, sign as signBytes } from "node:crypto";
import { afterEach, describe, expect, it, test, vi } from "vitest";
import { constantTimeEqual, signatureCheck } from "../../../src/webhooks/custom/index.ts";
import { secretTag, standardWebhooks, stripe } from "../../../src/webhooks/index.ts";
import { bytes, hmac, outcome } from "./outcome.ts";

afterEach(() => vi.restoreAllMocks());

const seconds = 1_763_714_567;
const now = () => seconds * 1_000;

/** An Ed25519 key, and its signature of a text. */
function ed25519(text: string) {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const key = new Uint8Array(publicKey.export({ type: "spki", format: "der" })).subarray(-32);
  return { key, signature: new Uint8Array(signBytes(null, Buffer.from(text), privateKey)) };
}

describe("signatureCheck", () => {
  it("accepts any of the signatures by any of the keys, of all parts in their order", async () => {
    const keys = ["żółć", Uint8Array.of(0, 255)];
    const check = signatureCheck("HMAC-SHA256", keys);
    const digest = (key: string | Uint8Array, text: string) => Buffer.from(hmac(key, text), "hex");
    for (const key of keys) {
      expect(await check([digest(key, "body")], bytes("body"))).toBe(true);
      expect(await check([digest("no", "body"), digest(key, "é.body")], ["é.", bytes("body"), ""])).toBe(
        true,
      );
      expect(await check([digest(key, "é.body")], bytes("body"))).toBe(false);
      expect(await check([digest(key, "body").subarray(1)], "body")).toBe(false);
    }
    expect(await check([], "body")).toBe(false);
  });

  it.each([[[]], [[""]], [["fine", new Uint8Array()]], [[undefined]]])("needs keys: %j", (keys) => {
    expect(() => signatureCheck("HMAC-SHA256", keys as string[])).toThrow(
      new TypeError("keys must not be empty (is the variable set?)"),
    );
  });

  it("imports no key for no signature: a platform may lack the scheme that the sender did not use", async () => {
    const importKey = vi.spyOn(crypto.subtle, "importKey");
    expect(await signatureCheck("Ed25519", [new Uint8Array(32)])([], "x")).toBe(false);
    expect(importKey).not.toHaveBeenCalled();
  });
});

// Every operation is a pass over the whole body.
describe("a request with wrong signatures costs", () => {
  /** The passes over the body, by operation. */
  function watchPasses() {
    const [sign, verify] = [vi.spyOn(crypto.subtle, "sign"), vi.spyOn(crypto.subtle, "verify")];
    return () => [sign.mock.calls.length, verify.mock.calls.length];
  }

  it("one pass for each secret, however many signatures there are", async () => {
    const passes = watchPasses();
    const provider = stripe({ secret: ["whsec_a", "whsec_b"], name: "stripe", now });
    const signatures = Array.from({ length: 15 }, (_, index) => `v1=${String(index).padStart(64, "0")}`);
    const headers = { "stripe-signature": [`t=${seconds}`, ...signatures].join(",") };
    expect(await outcome(provider, { headers, body: "{}" })).toBe("bad-signature");
    expect(passes()).toEqual([2, 0]);
  });

  it("at most four passes for each public key, and none where there are more signatures", async () => {
    const passes = watchPasses();
    const { key, signature } = ed25519(`m1.${seconds}.{}`);
    const text = (given: Uint8Array) => Buffer.from(given).toString("base64");
    const provider = standardWebhooks({
      secret: text(new Uint8Array(24)),
      publicKey: text(key),
      name: "n",
      now,
    });
    const send = (v1: number, v1a: number) => {
      const wrong = [
        ...Array<string>(v1).fill(`v1,${text(new Uint8Array(32))}`),
        ...Array<string>(v1a - 1).fill(`v1a,${text(new Uint8Array(64))}`),
      ];
      const signatures = [...wrong, `v1a,${text(signature)}`].join(" ");
      const headers = {
        "webhook-id": "m1",
        "webhook-timestamp": String(seconds),
        "webhook-signature": signatures,
      };
      return outcome(provider, { headers, body: "{}" });
    };
    expect(await send(12, 4)).toMatchObject({ id: "m1" });
    expect(passes()).toEqual([1, 4]);
    expect(await send(0, 5)).toBe("bad-signature");
    expect(passes()).toEqual([1, 4]);
  });
});

describe("secretTag", () => {
  it("never changes: it is part of the keys of deliveries that were handled before", async () => {
    const tag = (secret: string | Uint8Array) => hmac(secret, "redlock-edge: scope of a secret").slice(0, 32);
    for (const secret of ["żółć", Uint8Array.of(0, 255)]) expect(await secretTag(secret)).toBe(tag(secret));
    expect(await secretTag("one")).toBe("d3dff88fb95ab9e15c27b395f87363a0");
  });
});

test.each([
  ["", "", true],
  ["żółć", "żółć", true],
  ["a", "b", false],
  ["a", "", false],
  ["", "a", false],
  ["a", "a\0", false],
  ["a\0", "a", false],
  ["ba", "ca", false],
])("constantTimeEqual of %j and %j is %j", (one, other, expected) => {
  expect(constantTimeEqual(bytes(one), bytes(other))).toBe(expected);
});
