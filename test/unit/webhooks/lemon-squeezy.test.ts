import { createHmac } from "node:crypto";
import { describe, expect, it } from "vitest";
import { lemonSqueezy } from "../../../src/webhooks/index.ts";
import { outcome } from "./outcome.ts";
import { hash } from "./sender.ts";

describe("lemonSqueezy", () => {
  it("accepts what the page on signing says, and takes neither event nor id from a header", async () => {
    // https://docs.lemonsqueezy.com/help/webhooks/signing-requests: the HMAC's hex digest of the payload
    const body = '{"meta":{"event_name":"order_created"},"data":{"type":"orders","id":"1"}}';
    const headers = { "X-Signature": createHmac("sha256", "any text").update(body).digest("hex") };
    const provider = lemonSqueezy({ secret: "any text", name: "shop" });
    const verified = { id: hash(body), idSigned: true };
    expect(await outcome(provider, { headers, body })).toEqual(verified);
    const other = { ...headers, "X-Event-Name": "order_refunded", "X-Request-Id": "7" };
    expect(await outcome(provider, { headers: other, body })).toEqual(verified);
  });
});
