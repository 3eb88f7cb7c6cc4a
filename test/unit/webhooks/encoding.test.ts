import { generateKeyPairSync, sign } from "node:crypto";
import { describe, expect, it } from "vitest";
import {
  decodeBase64,
  decodeBase64Url,
  decodeDer,
  decodeHex,
  decodePublicKey,
  encodeBytes,
} from "../../../src/webhooks/custom/index.ts";
import { sendgrid } from "../../../src/webhooks/index.ts";
import { outcome } from "./outcome.ts";
import { vectorOf } from "./vectors.ts";

const all = Array.from({ length: 256 }, (_, byte) => byte);
const bytes = [[], [0], [0, 255], [255, 254, 253], [251, 239], [1, 2, 3, 250], all].map((list) =>
  Uint8Array.from(list),
);

it.each([
  ["hex", decodeHex, ["0", "0g", " 00", "00 ", "0x00"]],
  ["base64", decodeBase64, ["A", "AA", "AB==", "AA=", "A-==", "AA==\n", "_w=="]],
  ["base64url", decodeBase64Url, ["A", "AB", "AA==", "A+", "A/", "AA\n", " AA", "AAA="]],
] as const)("%s has one spelling for each value", (encoding, decode, others) => {
  for (const given of bytes) {
    const text = Buffer.from(given).toString(encoding);
    expect(encodeBytes(given, encoding)).toBe(text);
    expect(decode(text)).toEqual(given);
  }
  for (const text of others) expect(decode(text), text).toBeUndefined();
});

const genuine = vectorOf("sendgrid");
const publicKey = String(genuine.options.publicKey);
const pem = `-----BEGIN PUBLIC KEY-----\n${publicKey.replace(/.{64}/, "$&\n")}\n-----END PUBLIC KEY-----\n`;

describe("decodePublicKey", () => {
  it("reads base64 with or without the lines of PEM", async () => {
    for (const text of [publicKey, pem, ` ${publicKey}\n`]) {
      expect(encodeBytes(decodePublicKey(text), "base64")).toBe(publicKey);
    }
    expect(await outcome(sendgrid({ publicKey: pem, name: "n" }), genuine)).toEqual(genuine.verified);
  });

  it.each(["", " ", "no base64!", undefined, null, 5, "-----BEGIN PUBLIC KEY-----"])("refuses %o", (text) => {
    expect(() => decodePublicKey(text as string)).toThrow(/^publicKey must be base64/);
  });
});

describe("decodeDer", () => {
  const der = Buffer.from(genuine.headers["X-Twilio-Email-Event-Webhook-Signature"]!, "base64");

  it("reads what node:crypto signs, as node:crypto writes it raw", () => {
    const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    for (let count = 0; count < 200; count += 1) {
      const signed = sign("sha256", Buffer.from([count]), privateKey);
      const raw = decodeDer(signed)!;
      expect(raw).toHaveLength(64);
      // Written again from the two numbers, the DER is the same.
      expect(sequence(integer(raw.subarray(0, 32)), integer(raw.subarray(32)))).toEqual(signed);
    }
  });

  const sequence = (...parts: Buffer[]) => {
    const content = Buffer.concat(parts.map((part) => Buffer.concat([Buffer.of(2, part.length), part])));
    return Buffer.concat([Buffer.of(0x30, content.length), content]);
  };
  /** A positive number: without zeros at its beginning, but one before a byte whose highest bit is set. */
  const integer = (number: Uint8Array) => {
    const digits = number.subarray(number.findIndex((byte) => byte > 0));
    return Buffer.from(digits[0]! > 127 ? [0, ...digits] : digits);
  };
  const numbers = (...parts: number[][]) => sequence(...parts.map((part) => Buffer.from(part)));

  it("pads small numbers", () => {
    const raw = decodeDer(numbers([1], [0, 0x80]))!;
    expect([raw[31], raw[63], raw.reduce((sum, byte) => sum + byte, 0)]).toEqual([1, 0x80, 0x81]);
  });

  it.each([
    ["nothing", undefined],
    ["no bytes", new Uint8Array()],
    ["no sequence", Uint8Array.of(0x31, ...der.subarray(1))],
    ["a length that is wrong", Uint8Array.of(0x30, der[1]! + 1, ...der.subarray(2))],
    ["a byte more", Uint8Array.of(...der, 0)],
    ["a byte less", der.subarray(0, -1)],
    ["a third number", numbers([1], [1], [1])],
    ["one number", numbers([1])],
    ["a negative number", numbers([0x80], [1])],
    ["zero", numbers([0], [1])],
    ["no digits", numbers([], [1])],
    ["a zero too many", numbers([0, 1], [1])],
    ["a number of 33 bytes", numbers(Array<number>(33).fill(1), [1])],
    ["a long form of the length", Uint8Array.of(0x30, 0x81, der[1]!, ...der.subarray(2))],
    ["something else than a number", Uint8Array.of(0x30, 6, 2, 1, 1, 3, 1, 1)],
    ["a length beyond the end", Uint8Array.of(0x30, 6, 2, 1, 1, 2, 9, 1)],
  ])("refuses %s", (_, given) => {
    expect(decodeDer(given)).toBeUndefined();
  });
});

it("a key whose point is not on the curve is a TypeError that does not repeat it", async () => {
  const off = `${publicKey.slice(0, -8)}AAAAAA==`;
  const failed = outcome(sendgrid({ publicKey: off }), genuine);
  await expect(failed).rejects.toThrow(/^a key cannot be used for ECDSA-P256-SHA256/);
  await expect(failed).rejects.not.toThrow(off);
});
