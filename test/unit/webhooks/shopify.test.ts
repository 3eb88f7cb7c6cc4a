import { createHash, createHmac } from "node:crypto";
import { describe, expect, it } from "vitest";
import { type ShopifyOptions, shopify } from "../../../src/webhooks/index.ts";

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
  return shopify({ secret, topics: ["orders/create", "orders/paid"], ...options }).verify(request, body);
}

const byHeader = { id: "header" } as const;

describe("shopify", () => {
  it("prefers the delivery's id to the event's", async () => {
    const both = { "X-Shopify-Webhook-Id": "w-1", "X-Shopify-Event-Id": "e-1" };
    expect(await verify(both, byHeader)).toMatchObject({ id: "w-1", idSigned: false });
    expect((await verify({ "X-Shopify-Event-Id": "e-1" }, byHeader)).id).toBe("e-1");
    // The same for logs if the body's hash is the id.
    expect((await verify(both)).deliveryId).toBe("w-1");
    expect((await verify({ "X-Shopify-Event-Id": "e-1" })).deliveryId).toBe("e-1");
  });

  it("refuses a malformed delivery id instead of using the event's", async () => {
    const odd = { "X-Shopify-Webhook-Id": "a b", "X-Shopify-Event-Id": "e-1" };
    await expect(verify(odd, byHeader)).rejects.toMatchObject({ reason: "malformed-header" });
    const empty = { "X-Shopify-Webhook-Id": "", "X-Shopify-Event-Id": "e-1" };
    await expect(verify(empty, byHeader)).rejects.toMatchObject({ reason: "missing-header" });
  });

  it('has shop and topic as scope with id: "header"', async () => {
    const id = { "X-Shopify-Event-Id": "e-1" };
    const scopes = [
      (await verify(id, byHeader)).scope,
      (await verify({ ...id, "X-Shopify-Topic": "orders/paid" }, byHeader)).scope,
      (await verify({ ...id, "X-Shopify-Shop-Domain": "two.myshopify.com" }, byHeader)).scope,
    ];
    expect(scopes).toEqual([
      ["one.myshopify.com", "orders/create"],
      ["one.myshopify.com", "orders/paid"],
      ["two.myshopify.com", "orders/create"],
    ]);
  });

  it("has the topic as scope with the body's hash as id: another shop makes no new delivery", async () => {
    const id = createHash("sha256").update(body).digest("hex");
    const verified = { id, scope: ["orders/create"], idSigned: true };
    expect(await verify({}, { name: "shop" })).toEqual(verified);
    expect(await verify({ "X-Shopify-Shop-Domain": "two.myshopify.com" }, { name: "shop" })).toEqual(
      verified,
    );
    const paid = await verify({ "X-Shopify-Topic": "orders/paid" }, { name: "shop" });
    expect(paid).toEqual({ ...verified, scope: ["orders/paid"] });
  });

  it("refuses topics that are not listed: an invented topic makes no new delivery", async () => {
    const another = verify({ "X-Shopify-Topic": "orders/updated" });
    await expect(another).rejects.toMatchObject({ reason: "malformed-header" });
    const one = await verify({}, { topics: "orders/create" });
    expect(one.scope).toEqual(["orders/create"]);
    for (const topics of [undefined, [], "", ["a b"], [1]]) {
      expect(() => shopify({ secret, topics: topics as string[] })).toThrow(TypeError);
    }
    expect(() => shopify({ secret })).toThrow(/topics/);
  });

  it('receives every topic with id: "header", unless topics are listed', async () => {
    const updated = { "X-Shopify-Event-Id": "e-1", "X-Shopify-Topic": "orders/updated" };
    await expect(verify(updated, byHeader)).rejects.toMatchObject({ reason: "malformed-header" });
    const { scope } = await verify(updated, { ...byHeader, topics: undefined });
    expect(scope).toEqual(["one.myshopify.com", "orders/updated"]);
    expect(() => shopify({ secret, ...byHeader, topics: "a b" })).toThrow(/^topics must/);
  });

  /** Headers as Shopify sends them, under one of its two ways of naming them. */
  const namedBy = (prefix: string, more: Record<string, string> = {}) =>
    Object.fromEntries(
      Object.entries({
        // @shopify/shopify-api 15.0.0 accepts it under both names of the header.
        "hmac-sha256": "/72deZZtJIaDOjWRgkbKyr0SwLbnkKRuvAPiMxbUGSM=",
        topic: "orders/create",
        "shop-domain": "one.myshopify.com",
        "webhook-id": "w-1",
        ...more,
      }).map(([name, value]) => [`${prefix}${name}`, value]),
    );
  const verifyOnly = (headers: Record<string, string>, options: Partial<ShopifyOptions> = {}) =>
    shopify({ secret, name: "shopify", topics: ["orders/create"], ...options }).verify(
      new Request("https://example.com/shopify", { method: "POST", headers }),
      body,
    );

  it("takes the headers with and without X-, with the same id", async () => {
    const id = createHash("sha256").update(body).digest("hex");
    for (const prefix of ["Shopify-", "X-Shopify-"]) {
      const verified = { id, scope: ["orders/create"], deliveryId: "w-1", idSigned: true };
      expect(await verifyOnly(namedBy(prefix))).toEqual(verified);
      const scope = ["one.myshopify.com", "orders/create"];
      const byId = { id: "w-1", scope, deliveryId: "w-1", idSigned: false };
      expect(await verifyOnly(namedBy(prefix), { ...byHeader, topics: undefined })).toEqual(byId);
      const other = namedBy(prefix, { topic: "orders/paid" });
      await expect(verifyOnly(other)).rejects.toMatchObject({ reason: "malformed-header" });
      const forged = namedBy(prefix, { "hmac-sha256": Buffer.alloc(32).toString("base64") });
      await expect(verifyOnly(forged)).rejects.toMatchObject({ reason: "bad-signature" });
    }
  });

  it("reads all headers under one way of naming: without X-, where both are present", async () => {
    const both = {
      ...namedBy("x-shopify-", { "webhook-id": "w-2", topic: "orders/paid" }),
      ...namedBy("shopify-"),
    };
    expect(await verifyOnly(both)).toMatchObject({ deliveryId: "w-1", scope: ["orders/create"] });
    const forged = namedBy("shopify-", { "hmac-sha256": Buffer.alloc(32).toString("base64") });
    await expect(verifyOnly({ ...namedBy("x-shopify-"), ...forged })).rejects.toMatchObject({
      reason: "bad-signature",
    });
    const mixed = { ...namedBy("x-shopify-"), "shopify-hmac-sha256": namedBy("")["hmac-sha256"]! };
    await expect(verifyOnly(mixed)).rejects.toMatchObject({ reason: "missing-header" });
  });
});
