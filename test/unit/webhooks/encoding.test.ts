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
const bytes = [[], [0], [0, 255], [255, 254, 253], [251, 239], all].map((list) => Uint8Array.from(list));

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

it("a public key is base64 with or without the lines of PEM", () => {
  const pem = `-----BEGIN PUBLIC KEY-----\n${publicKey.replace(/.{64}/, "$&\n")}\n-----END PUBLIC KEY-----\n`;
  for (const text of [publicKey, pem, ` ${publicKey}\n`]) {
    expect(encodeBytes(decodePublicKey(text), "base64")).toBe(publicKey);
  }
  for (const text of ["", "no base64!", undefined, 5, "-----BEGIN PUBLIC KEY-----"]) {
    expect(() => decodePublicKey(text as string)).toThrow(/^publicKey must be base64/);
  }
});

it("a public key whose point is not on the curve is a TypeError that does not repeat it", async () => {
  const off = `${publicKey.slice(0, -8)}AAAAAA==`;
  const failed = outcome(sendgrid({ publicKey: off }), genuine);
  await expect(failed).rejects.toThrow(/^a key cannot be used for ECDSA-P256-SHA256/);
  await expect(failed).rejects.not.toThrow(off);
});

describe("DER", () => {
  const part = (...digits: number[]) => Buffer.of(2, digits.length, ...digits);
  const sequence = (...parts: Buffer[]) => {
    const content = Buffer.concat(parts);
    return Buffer.of(0x30, content.length, ...content);
  };
  /** A positive number: without zeros at its beginning, but one before a byte whose highest bit is set. */
  const integer = (number: Uint8Array) => {
    const digits = number.subarray(number.findIndex((byte) => byte > 0));
    return digits[0]! > 127 ? part(0, ...digits) : part(...digits);
  };

  it("of numbers of every length is read as node:crypto writes it", () => {
    const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    for (let count = 0; count < 200; count += 1) {
      const signed = sign("sha256", Buffer.from([count]), privateKey);
      const raw = decodeDer(signed)!;
      expect(raw).toHaveLength(64);
      expect(sequence(integer(raw.subarray(0, 32)), integer(raw.subarray(32)))).toEqual(signed);
    }
  });

  const one = part(1);
  it.each([
    ["nothing", undefined],
    ["no bytes", Buffer.of()],
    ["no sequence", Buffer.of(0x31, 6, ...one, ...one)],
    ["a byte more", Buffer.of(...sequence(one, one), 0)],
    ["a byte less", sequence(one, one).subarray(0, -1)],
    ["a third number", sequence(one, one, one)],
    ["a negative number", sequence(part(0x80), one)],
    ["zero", sequence(part(0), one)],
    ["a zero too many", sequence(part(0, 1), one)],
    ["a number of 33 bytes", sequence(part(...Array<number>(33).fill(1)), one)],
    ["a length beyond the end", Buffer.of(0x30, 6, 2, 1, 1, 2, 9, 1)],
  ])("refuses %s", (_, given) => {
    expect(decodeDer(given)).toBeUndefined();
  });
});
