import { expect, it } from "vitest";
import { type ShopifyOptions, shopify } from "../../../src/webhooks/index.ts";
import { hash, hmac, outcome } from "./outcome.ts";

const body = '{"id":820982911946154508,"total_price":"398.00"}';
const byHeader = { id: "header" } as const;
const topics = ["orders/create", "orders/paid"];
const forged = Buffer.alloc(32).toString("base64");

/** A delivery's headers, under one of Shopify's two ways of naming them; an undefined one is absent. */
function named(prefix: string, more: Readonly<Record<string, string | undefined>> = {}) {
  const all = {
    "hmac-sha256": hmac("hush", body, "base64"),
    topic: "orders/create",
    "shop-domain": "one.myshopify.com",
    ...more,
  };
  const given = Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return Object.fromEntries(given.map(([name, value]) => [prefix + name, value]));
}

const send = (headers: Readonly<Record<string, string>>, options: Partial<ShopifyOptions> = {}) =>
  outcome(shopify({ secret: "hush", name: "shop", topics, ...options }), { headers, body });

it("prefers the delivery's id to the event's, which are unique for a shop and topic", async () => {
  const both = named("x-shopify-", { "webhook-id": "w-1", "event-id": "e-1" });
  const event = named("x-shopify-", { "event-id": "e-1" });
  const scope = ["one.myshopify.com", "orders/create"];
  expect(await send(both, byHeader)).toMatchObject({ id: "w-1", idSigned: false, scope });
  expect(await send(event, byHeader)).toMatchObject({ id: "e-1", idSigned: false });
  // The same for logs if the body's hash is the id.
  expect(await send(both)).toMatchObject({ deliveryId: "w-1" });
  expect(await send(event)).toMatchObject({ deliveryId: "e-1" });
  // One that is malformed is not replaced by the event's.
  const odd = named("x-shopify-", { "webhook-id": "a b", "event-id": "e-1" });
  expect(await send(odd, byHeader)).toBe("malformed-header");
  const empty = named("x-shopify-", { "webhook-id": "", "event-id": "e-1" });
  expect(await send(empty, byHeader)).toBe("missing-header");
});

it("has the topic as scope with the body's hash as id: another shop makes no new delivery", async () => {
  const verified = { id: hash(body), scope: ["orders/create"], idSigned: true };
  expect(await send(named("x-shopify-"))).toEqual(verified);
  expect(await send(named("x-shopify-", { "shop-domain": "two.myshopify.com" }))).toEqual(verified);
  const paid = { ...verified, scope: ["orders/paid"] };
  expect(await send(named("x-shopify-", { topic: "orders/paid" }))).toEqual(paid);
});

it("checks the signature before shop and topic", async () => {
  for (const more of [{ topic: undefined }, { "shop-domain": "" }, { topic: "orders/updated" }]) {
    expect(await send(named("x-shopify-", { ...more, "hmac-sha256": forged }))).toBe("bad-signature");
    expect(await send(named("x-shopify-", more))).toMatch(/-header$/);
  }
});

it("refuses topics that are not listed: an invented topic makes no new delivery", async () => {
  for (const prefix of ["shopify-", "x-shopify-"]) {
    const updated = named(prefix, { topic: "orders/updated", "event-id": "e-1" });
    expect(await send(updated)).toBe("malformed-header");
    expect(await send(updated, byHeader)).toBe("malformed-header");
    // With the header as id, every topic is received unless some are listed.
    const scope = ["one.myshopify.com", "orders/updated"];
    expect(await send(updated, { ...byHeader, topics: undefined })).toMatchObject({ id: "e-1", scope });
  }
  expect(await send(named("x-shopify-"), { topics: "orders/create" })).toMatchObject({
    scope: ["orders/create"],
  });
});

it("reads all headers under one way of naming: without X-, where both are present", async () => {
  const older = named("x-shopify-", { "webhook-id": "w-2", topic: "orders/paid" });
  const newer = named("shopify-", { "webhook-id": "w-1" });
  expect(await send({ ...older, ...newer })).toMatchObject({ deliveryId: "w-1", scope: ["orders/create"] });
  expect(await send({ ...older, ...named("shopify-", { "hmac-sha256": forged }) })).toBe("bad-signature");
  expect(await send({ ...older, "shopify-hmac-sha256": newer["shopify-hmac-sha256"]! })).toBe(
    "missing-header",
  );
});
