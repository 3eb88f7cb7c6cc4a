import { createHmac } from "node:crypto";
import { describe, expect, it } from "vitest";
import { type LinearOptions, linear } from "../../../src/webhooks/index.ts";

const secret = "lin_wh_0123456789";
const at = 1_763_714_567_890;
const event = {
  action: "update",
  type: "Issue",
  createdAt: "2025-11-21T08:42:47.000Z",
  data: { id: "539068e2" },
};

function verify(text: string, options: Partial<LinearOptions> = {}) {
  const body = new TextEncoder().encode(text);
  const headers = {
    "Linear-Delivery": "234d1a4e-b617-4388-90fe-adc3633d6b72",
    "Linear-Event": "Issue",
    "Linear-Signature": createHmac("sha256", secret).update(body).digest("hex"),
  };
  const request = new Request("https://example.com/linear", { method: "POST", headers });
  return linear({ secret, now: () => at, ...options }).verify(request, body);
}

const sentAt = (webhookTimestamp: unknown) => JSON.stringify({ ...event, webhookTimestamp });

describe("linear", () => {
  it("takes the time from the body, in ms", async () => {
    const verified = await verify(sentAt(at - 59_999), { id: "header", name: "linear" });
    expect(verified).toEqual({
      id: "234d1a4e-b617-4388-90fe-adc3633d6b72",
      deliveryId: "234d1a4e-b617-4388-90fe-adc3633d6b72",
      timestamp: at - 59_999,
      idSigned: false,
    });
  });

  it.each([
    ["none", JSON.stringify(event)],
    ["a string", sentAt(String(at))],
    ["null", sentAt(null)],
    ["seconds", sentAt(Math.floor(at / 1_000))],
    ["more than a number holds", `{"webhookTimestamp":1e999}`],
    ["no JSON around it", "webhookTimestamp"],
    ["nothing around it", ""],
  ])("refuses a signed body whose time is: %s", async (_, text) => {
    await expect(verify(text)).rejects.toMatchObject({ reason: "outside-tolerance" });
  });

  it("reports bad-signature before it checks the time", async () => {
    await expect(verify(sentAt(0), { secret: "lin_wh_another" })).rejects.toMatchObject({
      reason: "bad-signature",
    });
  });

  it("recognises an event by its body when it is sent at another time", async () => {
    const first = await verify(sentAt(at));
    const again = await verify(sentAt(at + 30_000));
    expect(again).toEqual({ ...first, timestamp: at + 30_000 });
    expect(first).toMatchObject({ idSigned: true, deliveryId: "234d1a4e-b617-4388-90fe-adc3633d6b72" });
    const another = JSON.stringify({ ...event, action: "remove", webhookTimestamp: at });
    expect((await verify(another)).id).not.toBe(first.id);
  });
});
