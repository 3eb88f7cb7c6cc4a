import { createHmac } from "node:crypto";
import { describe, expect, it } from "vitest";
import { zoom, zoomChallenge } from "../../../src/webhooks/index.ts";
import { outcome } from "./outcome.ts";
import { bytes, hash } from "./sender.ts";

// Signed as isEventVerified and hashUrlValidationEvent of @zoom/rivet 0.4.0 do it.
const secret = "qlb5CvrHSAm9zI7EX2U6tA";
const seconds = 1_658_940_994;
const body =
  '{"event":"meeting.started","event_ts":1658940994914,"payload":{"account_id":"AAAAAABBBB","object":{"id":"1234567890"}}}';
const signature = "v0=eca0b4ff4534d01d630c4d0bbba8f9ea1e5309a85e62db34e796caea539ee1d1";
const provider = zoom({ secret, name: "zoom", now: () => seconds * 1_000 });

const challenge = (plainToken: unknown) =>
  bytes(JSON.stringify({ event: "endpoint.url_validation", event_ts: 1, payload: { plainToken } }));

describe("zoom", () => {
  it("accepts an event, whose id is the body's hash", async () => {
    const headers = { "x-zm-signature": signature, "x-zm-request-timestamp": String(seconds) };
    const verified = { id: hash(body), timestamp: seconds * 1_000, idSigned: true };
    expect(await outcome(provider, { headers, body })).toEqual(verified);
    const tracked = { ...headers, "x-zm-trackingid": "v=2.0;clid=aw1" };
    expect(await outcome(provider, { headers: tracked, body })).toEqual({
      ...verified,
      deliveryId: "v=2.0;clid=aw1",
    });
  });

  it("refuses a time that is not in seconds, although the same text was signed", async () => {
    const time = `${seconds}000`;
    const signed = createHmac("sha256", secret).update(`v0:${time}:${body}`).digest("hex");
    const headers = { "x-zm-signature": `v0=${signed}`, "x-zm-request-timestamp": time };
    expect(await outcome(provider, { headers, body })).toBe("malformed-header");
  });
});

describe("zoomChallenge", () => {
  it("answers with the token and its HMAC", async () => {
    const answer = await zoomChallenge(challenge("qgg8vlvZRS6UYooatFL8Aw"), secret);
    expect(answer?.status).toBe(200);
    expect(await answer?.json()).toEqual({
      plainToken: "qgg8vlvZRS6UYooatFL8Aw",
      encryptedToken: "859c10f856703ee0a8e51637032cc30c27453c69af29e8432de78fe2f3a55cf7",
    });
  });

  it("signs no text that could be a delivery", async () => {
    for (const token of [
      `v0:${seconds}:${body}`,
      "v0:1",
      "a b",
      "",
      "x".repeat(256),
      5.5,
      null,
      undefined,
      {},
    ]) {
      expect(await zoomChallenge(challenge(token), secret), String(token)).toBe(undefined);
    }
  });

  it("is undefined for other bodies", async () => {
    for (const text of [
      body,
      "",
      "null",
      "[]",
      '{"event":"endpoint.url_validation"}',
      '{"payload":{"plainToken":"a"}}',
    ]) {
      expect(await zoomChallenge(bytes(text), secret), text).toBe(undefined);
    }
  });

  it("needs a secret", async () => {
    for (const bad of ["", undefined, "a b"]) {
      const error = { name: "TypeError", message: expect.stringMatching(/^secret /) };
      await expect(zoomChallenge(challenge("a"), bad as string)).rejects.toMatchObject(error);
    }
  });
});
