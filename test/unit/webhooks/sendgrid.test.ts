import { generateKeyPairSync, sign } from "node:crypto";
import { describe, expect, it } from "vitest";
import { decodeDer, decodePublicKey } from "../../../src/webhooks/custom/index.ts";
import { secretTag, sendgrid } from "../../../src/webhooks/index.ts";
import { outcome } from "./outcome.ts";
import { hash } from "./sender.ts";

// The example of @sendgrid/eventwebhook 8.0.0's tests.
const publicKey =
  "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE83T4O/n84iotIvIW4mdBgQ/7dAfSmpqIM8kF9mN1flpVKS3GRqe62gw+2fNNRaINXvVpiglSI8eNEc6wEA3F+g==";
const signature =
  "MEUCIGHQVtGj+Y3LkG9fLcxf3qfI10QysgDWmMOVmxG0u6ZUAiEAyBiXDWzM+uOe5W0JuG+luQAbPIqHh89M15TluLtEZtM=";
const seconds = 1_600_112_502;
const body =
  '[{"email":"hello@world.com","event":"dropped","reason":"Bounced Address",' +
  '"sg_event_id":"ZHJvcC0xMDk5NDkxOS1MUnpYbF9OSFN0T0doUTRrb2ZTbV9BLTA",' +
  '"sg_message_id":"LRzXl_NHStOGhQ4kofSm_A.filterdrecv-p3mdw1-756b745b58-kmzbl-18-5F5FC76C-9.0",' +
  '"smtp-id":"<LRzXl_NHStOGhQ4kofSm_A@ismtpd0039p1iad1.sendgrid.net>","timestamp":1600112492}]\r\n';

const headersOf = (signed: string, time: string | number = seconds) => ({
  "X-Twilio-Email-Event-Webhook-Signature": signed,
  "X-Twilio-Email-Event-Webhook-Timestamp": String(time),
});
const pem = `-----BEGIN PUBLIC KEY-----\n${publicKey.replace(/.{64}/, "$&\n")}\n-----END PUBLIC KEY-----\n`;

describe("sendgrid", () => {
  it("accepts the example of SendGrid's library, of any age unless a tolerance is given", async () => {
    for (const key of [publicKey, pem]) {
      expect(await outcome(sendgrid({ publicKey: key }), { headers: headersOf(signature), body })).toEqual({
        id: hash(body),
        timestamp: seconds * 1_000,
        idSigned: true,
        secretTags: [await secretTag(Buffer.from(publicKey, "base64"))],
      });
    }
    const strict = sendgrid({ publicKey, tolerance: 60_000 });
    expect(await outcome(strict, { headers: headersOf(signature), body })).toBe("outside-tolerance");
  });

  it("refuses a time and a body that are split at another place", async () => {
    const headers = headersOf(signature, String(seconds) + body[0]);
    expect(await outcome(sendgrid({ publicKey }), { headers, body: body.slice(1) })).toBe("malformed-header");
  });

  it("throws a TypeError for a key whose point is not on the curve, without repeating it", async () => {
    const off = `${publicKey.slice(0, -8)}AAAAAA==`;
    const failed = outcome(sendgrid({ publicKey: off }), { headers: headersOf(signature), body });
    await expect(failed).rejects.toThrow(TypeError);
    await expect(failed).rejects.not.toThrow(off);
  });
});

describe("decodeDer", () => {
  const der = Buffer.from(signature, "base64");

  it("reads what node:crypto signs, as node:crypto writes it raw", () => {
    const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    for (let count = 0; count < 200; count += 1) {
      const signed = sign("sha256", Buffer.from([count]), privateKey);
      const raw = decodeDer(signed)!;
      expect(raw).toHaveLength(64);
      // Written again from the two numbers, the DER is the same.
      const integer = (number: Uint8Array) => {
        const hex = Buffer.from(number)
          .toString("hex")
          .replace(/^(?:00)+/, "");
        const digits = Buffer.from(Number.parseInt(hex.slice(0, 2), 16) > 127 ? `00${hex}` : hex, "hex");
        return Buffer.concat([Buffer.of(2, digits.length), digits]);
      };
      const both = Buffer.concat([integer(raw.subarray(0, 32)), integer(raw.subarray(32))]);
      expect(Buffer.concat([Buffer.of(0x30, both.length), both])).toEqual(signed);
    }
  });

  const integers = (...parts: number[][]) => {
    const content = parts.flatMap((part) => [2, part.length, ...part]);
    return Uint8Array.of(0x30, content.length, ...content);
  };

  it("pads small numbers", () => {
    const raw = decodeDer(integers([1], [0, 0x80]))!;
    expect([raw[31], raw[63], raw.reduce((sum, byte) => sum + byte, 0)]).toEqual([1, 0x80, 0x81]);
  });

  it.each([
    ["nothing", undefined],
    ["no bytes", new Uint8Array()],
    ["no sequence", Uint8Array.of(0x31, ...der.subarray(1))],
    ["a length that is wrong", Uint8Array.of(0x30, der[1]! + 1, ...der.subarray(2))],
    ["a byte more", Uint8Array.of(...der, 0)],
    ["a byte less", der.subarray(0, -1)],
    ["a third number", integers([1], [1], [1])],
    ["one number", integers([1])],
    ["a negative number", integers([0x80], [1])],
    ["zero", integers([0], [1])],
    ["no digits", integers([], [1])],
    ["a zero too many", integers([0, 1], [1])],
    ["a number of 33 bytes", integers(Array<number>(33).fill(1), [1])],
    ["a long form of the length", Uint8Array.of(0x30, 0x81, der[1]!, ...der.subarray(2))],
    ["something else than a number", Uint8Array.of(0x30, 6, 2, 1, 1, 3, 1, 1)],
    ["a length beyond the end", Uint8Array.of(0x30, 6, 2, 1, 1, 2, 9, 1)],
  ])("refuses %s", (_, bytes) => {
    expect(decodeDer(bytes)).toBeUndefined();
  });
});

describe("decodePublicKey", () => {
  it("reads base64 with or without the lines of PEM", () => {
    for (const text of [publicKey, pem, ` ${publicKey}\n`]) {
      expect(Buffer.from(decodePublicKey(text)).toString("base64")).toBe(publicKey);
    }
  });

  it.each(["", " ", "no base64!", undefined, null, 5, "-----BEGIN PUBLIC KEY-----"])("refuses %o", (text) => {
    expect(() => decodePublicKey(text as string)).toThrow(/^publicKey must be base64/);
  });
});
