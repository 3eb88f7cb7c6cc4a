import { describe, expect, it } from "vitest";
import { type PaddleOptions, paddle } from "../../../src/webhooks/index.ts";
import { outcome } from "./outcome.ts";
import { hmac } from "./sender.ts";

// A signature that Webhooks.isSignatureValid of @paddle/paddle-node-sdk 3.10.0 accepts.
const secret = "pdl_ntfset_01hz_abcdefghijklmnop";
const seconds = 1_763_714_567;
const body =
  '{"event_id":"evt_01hv8x29kz0t586xy6zn1a62ny","event_type":"transaction.paid","occurred_at":"2024-04-12T10:18:49.621022Z",' +
  '"notification_id":"ntf_01hv8x2az1t5xqh0pzw7n8b4m2","data":{"id":"txn_1"}}';
const h1 = "h1=06ddde73f10a7b0698a918f156c441294ac387787638287a1f7e146fd6c0f464";
const ts = `ts=${seconds}`;

const verify = (signature: string, text = body, options: Partial<PaddleOptions> = {}) =>
  outcome(paddle({ secret, name: "paddle", now: () => seconds * 1_000, ...options }), {
    headers: { "Paddle-Signature": signature },
    body: text,
  });
const accepted = { id: "evt_01hv8x29kz0t586xy6zn1a62ny", timestamp: seconds * 1_000, idSigned: true };

describe("paddle", () => {
  it("has the event's id, which replays share, not the notification's", async () => {
    expect(await verify(`${ts};${h1}`)).toEqual(accepted);
    const replay = body.replace(/ntf_\w+/, "ntf_2");
    const signed = `h1=${hmac(secret, `${seconds}:${replay}`).digest("hex")}`;
    expect(await verify(`${ts};${signed}`, replay)).toEqual(accepted);
  });

  it("accepts one of several h1, while Paddle rotates the key", async () => {
    const other = `h1=${"0".repeat(64)}`;
    expect(await verify(`${ts};${other};${h1}`)).toEqual(accepted);
    expect(await verify(`${h1};${ts}`)).toEqual(accepted);
    expect(await verify(`${ts};${other}`)).toBe("bad-signature");
  });

  it("refuses two times, other separators and other schemes", async () => {
    for (const text of [
      `${ts};ts=${seconds + 1};${h1}`,
      `ts=${seconds + 1};${ts};${h1}`,
      `${ts},${h1}`,
      `${ts};h2=${h1.slice(3)}`,
    ]) {
      expect(await verify(text), text).toBe("malformed-header");
    }
  });
});
