import { createHash, createHmac } from "node:crypto";
import { describe, expect, it } from "vitest";
import { bodyHash, bodyId } from "../../../src/webhooks/custom/index.ts";
import { github, secretTag, standardWebhooks, type WebhookProvider } from "../../../src/webhooks/index.ts";
import { outcome } from "./outcome.ts";
import { at, bytes, hash, hmac, leastOptions, makerOf, url, whole } from "./sender.ts";
import { senders } from "./senders.ts";

describe("the id from a field of the body", () => {
  it.each(["x", "evt_1", "~".repeat(255)])("is any valid id: %s", async (id) => {
    expect(await bodyId(bytes(JSON.stringify({ event_id: id, more: 1 })), "event_id")).toBe(id);
  });

  it.each([
    ["no such field", "{}"],
    ["a number", '{"event_id":5}'],
    ["an empty string", '{"event_id":""}'],
    ["a long string", JSON.stringify({ event_id: "~".repeat(256) })],
    ["a string that is not ASCII", '{"event_id":"é"}'],
    ["a list", '["event_id"]'],
    ["null", "null"],
    ["a string", '"event_id"'],
    ["a form", "event_id=1&text=%2F"],
    ["nothing", ""],
  ])("is the body's hash if the body has %s", async (_, text) => {
    expect(await bodyId(bytes(text), "event_id")).toBe(hash(text));
  });
});

describe.each([
  ["github", {}, "x-github-delivery"],
  ["shopify", { topics: "orders/paid" }, "x-shopify-webhook-id"],
  ["linear", { now: () => at }, "linear-delivery"],
])("the id of %s", (title, more, idHeader) => {
  const sender = senders[title]!;
  const { headers, body } = sender.sign(sender.secrets[0]);
  const { [idHeader]: _, ...rest } = headers;
  const make = (id: unknown) => makerOf(title)({ ...leastOptions(title, sender), ...more, id });
  const of = (id: unknown, value?: string) =>
    outcome(make(id), { headers: value === undefined ? rest : { ...rest, [idHeader]: value }, body, url });

  it('is the unsigned header with id: "header"', async () => {
    expect(await of("header", "one")).toMatchObject({ id: "one", idSigned: false, deliveryId: "one" });
    expect(await of("header")).toBe("missing-header");
  });

  it('depends on the body and on no header with id: "body", the default', async () => {
    const first = await of(undefined);
    expect(first).toMatchObject({ id: sender.verified.id, idSigned: true });
    expect(await of("body")).toEqual(first);
    expect(await of(undefined, "one")).toEqual({ ...(first as object), deliveryId: "one" });
    expect(await of("body", "not an id")).toEqual(first);
  });

  it.each(["", "hash", "headers", null, ["body"], 1])("has no other source: %j", (id) => {
    expect(() => make(id)).toThrow(
      expect.objectContaining({ name: "TypeError", message: expect.stringMatching(/^id /) }),
    );
  });
});

it("bodyHash is SHA-256 in lower-case hex, also of a part of a buffer", async () => {
  const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");
  for (const text of ["", "\u0000\u0001", "Zażółć"]) expect(await bodyHash(bytes(text))).toBe(sha256(text));
  expect(await bodyHash(bytes("xabcx").subarray(1, 4))).toBe(sha256("abc"));
});

describe("secretTag", () => {
  const verified = async (provider: WebhookProvider, secret: string) => {
    const headers = { "x-hub-signature-256": `sha256=${hmac(secret, "").digest("hex")}` };
    return ((await outcome(provider, { headers })) as { secretTags?: string[] }).secretTags;
  };

  it("is given for each secret, in order, unless the provider has a name of its own", async () => {
    const tags = [await secretTag("one"), await secretTag("two")];
    expect(await verified(github({ secret: ["one", "two"] }), "two")).toEqual(tags);
    expect(new Set(tags).size).toBe(2);
    expect(await verified(github({ secret: "two", name: "github" }), "two")).toBe(undefined);
  });

  it("never changes: it is part of the keys of deliveries that were handled before", async () => {
    const tag = (secret: string | Uint8Array) =>
      createHmac("sha256", secret).update("redlock-edge: scope of a secret").digest("hex").slice(0, 32);
    for (const secret of ["żółć", Uint8Array.of(0, 255)]) expect(await secretTag(secret)).toBe(tag(secret));
    expect(await secretTag("one")).toBe("d3dff88fb95ab9e15c27b395f87363a0");
  });

  it("is made of public keys, or of the secrets alone if there are both", async () => {
    const key = (fill: number) => Buffer.alloc(32, fill);
    const { headers } = senders["standard webhooks"]!.sign(`whsec_${key(1).toString("base64")}`);
    const both = { secret: key(1).toString("base64"), publicKey: key(2).toString("base64") };
    const provider = standardWebhooks({ now: () => whole, ...both });
    expect(await outcome(provider, { headers, body: "{}" })).toMatchObject({
      secretTags: [await secretTag(key(1))],
    });
  });
});
