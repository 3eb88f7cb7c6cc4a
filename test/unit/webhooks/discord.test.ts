import { createHash, generateKeyPairSync, sign } from "node:crypto";
import { describe, expect, it } from "vitest";
import { discord } from "../../../src/webhooks/index.ts";

const pair = generateKeyPairSync("ed25519");
const publicKey = pair.publicKey.export({ format: "der", type: "spki" }).subarray(-32).toString("hex");
const seconds = 1_763_714_567;
const bytes = (text: string) => new TextEncoder().encode(text);
const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");

function request(signature: string, time: string): Request {
  const headers = { "X-Signature-Ed25519": signature, "X-Signature-Timestamp": time };
  return new Request("https://example.com/discord", { method: "POST", headers });
}

function signed(text: string, time = String(seconds)): string {
  return sign(null, Buffer.from(time + text), pair.privateKey).toString("hex");
}

const provider = discord({ publicKey });
const verify = (text: string) => provider.verify(request(signed(text), String(seconds)), bytes(text));

describe("discord", () => {
  it("takes the id of an interaction, including PING", async () => {
    const ping = '{"application_id":"1","id":"787053080478613555","token":"x","type":1,"version":1}';
    expect(await verify(ping)).toMatchObject({
      id: "787053080478613555",
      timestamp: seconds * 1_000,
      idSigned: true,
    });
  });

  it("takes the body's hash for webhook events and their PING, which have no id", async () => {
    const ping = '{"version":1,"application_id":"1234560123453231555","type":0}';
    const event =
      '{"version":1,"application_id":"1","type":1,"event":{"type":"ENTITLEMENT_CREATE","data":{"id":"7"}}}';
    for (const text of [ping, event]) expect((await verify(text)).id).toBe(sha256(text));
  });

  it("takes a public key in upper case too", async () => {
    const upper = discord({ publicKey: publicKey.toUpperCase() });
    await expect(upper.verify(request(signed("{}"), String(seconds)), bytes("{}"))).resolves.toBeDefined();
  });

  it("refuses a genuine delivery whose time and body are split at another place", async () => {
    const genuine = signed('0{"id":"1"}');
    for (const [time, body] of [
      [`${seconds}0`, '{"id":"1"}'],
      [String(seconds).slice(0, -1), `${seconds % 10}0{"id":"1"}`],
      [`${seconds}0{"id":"1"}`, ""],
    ] as const) {
      const outcome = provider.verify(request(genuine, time), bytes(body));
      await expect(outcome, time).rejects.toMatchObject({ reason: "malformed-header" });
    }
  });

  it("refuses an invented signature, as Discord sends to test an address", async () => {
    const outcome = provider.verify(request("0".repeat(128), String(seconds)), bytes("{}"));
    await expect(outcome).rejects.toMatchObject({ reason: "bad-signature" });
  });
});
