import { createHash, createHmac } from "node:crypto";
import { describe, expect, it } from "vitest";
import { type ShopifyOptions, shopify } from "../../src/webhooks/index.ts";

const secret = "hush";
const body = new TextEncoder().encode('{"id":820982911946154508,"total_price":"398.00"}');

function verify(headers: Record<string, string>, options: Partial<ShopifyOptions> = {}) {
  const signature = createHmac("sha256", secret).update(body).digest("base64");
  const request = new Request("https://example.com/shopify", {
    method: "POST",
    headers: {
      "X-Shopify-Hmac-Sha256": signature,
      "X-Shopify-Topic": "orders/create",
      "X-Shopify-Shop-Domain": "one.myshopify.com",
      ...headers,
    },
  });
  return shopify({ secret, ...options }).verify(request, body);
}

describe("shopify", () => {
  it("takes the delivery's id before the event's, and the event's where there is no other", async () => {
    const both = { "X-Shopify-Webhook-Id": "w-1", "X-Shopify-Event-Id": "e-1" };
    expect((await verify(both)).id).toBe("w-1");
    expect((await verify({ "X-Shopify-Event-Id": "e-1" })).id).toBe("e-1");
  });

  it("does not pass over a delivery's id that is none", async () => {
    const odd = { "X-Shopify-Webhook-Id": "a b", "X-Shopify-Event-Id": "e-1" };
    await expect(verify(odd)).rejects.toMatchObject({ reason: "malformed-header" });
    const empty = { "X-Shopify-Webhook-Id": "", "X-Shopify-Event-Id": "e-1" };
    await expect(verify(empty)).rejects.toMatchObject({ reason: "missing-header" });
  });

  it("keeps shops and topics apart", async () => {
    const id = { "X-Shopify-Event-Id": "e-1" };
    const scopes = [
      (await verify(id)).scope,
      (await verify({ ...id, "X-Shopify-Topic": "orders/paid" })).scope,
      (await verify({ ...id, "X-Shopify-Shop-Domain": "two.myshopify.com" })).scope,
    ];
    expect(scopes).toEqual([
      ["one.myshopify.com", "orders/create"],
      ["one.myshopify.com", "orders/paid"],
      ["two.myshopify.com", "orders/create"],
    ]);
  });

  it("keeps topics apart by the body's hash, and no shop can make a captured body a new one", async () => {
    const id = createHash("sha256").update(body).digest("hex");
    const told = { id, scope: ["orders/create"], idSigned: true };
    expect(await verify({}, { id: "body" })).toEqual(told);
    expect(await verify({ "X-Shopify-Shop-Domain": "two.myshopify.com" }, { id: "body" })).toEqual(told);
    const paid = await verify({ "X-Shopify-Topic": "orders/paid" }, { id: "body" });
    expect(paid).toEqual({ ...told, scope: ["orders/paid"] });
  });

  it.each(["", "orders paid", "x".repeat(256), "café"])("refuses the topic %o", async (topic) => {
    await expect(verify({ "X-Shopify-Webhook-Id": "w-1", "X-Shopify-Topic": topic })).rejects.toMatchObject({
      reason: topic === "" ? "missing-header" : "malformed-header",
    });
  });
});
