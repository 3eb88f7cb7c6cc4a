import { createHash, createHmac } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it, type MockInstance, vi } from "vitest";
import {
  bodyHash,
  discord,
  github,
  linear,
  paddle,
  secretTag,
  shopify,
  slack,
  square,
  standardWebhooks,
  stripe,
  type WebhookProvider,
} from "../../../src/webhooks/index.ts";

// The ids of verified deliveries. Every signature is accepted here: with public keys any, with secrets that of zeros.
let mocks: MockInstance[];
beforeAll(() => {
  const sign = crypto.subtle.sign.bind(crypto.subtle);
  mocks = [
    vi.spyOn(crypto.subtle, "verify").mockResolvedValue(true),
    vi.spyOn(crypto.subtle, "sign").mockImplementation(async (algorithm, key, data) => {
      // The tags of secrets name their algorithm by a text, and are the real ones.
      if (typeof algorithm === "string") return sign(algorithm, key, data);
      const { hash } = key.algorithm as HmacKeyAlgorithm;
      return new ArrayBuffer(hash.name === "SHA-1" ? 20 : 32);
    }),
  ];
});
afterAll(() => {
  for (const mock of mocks) mock.mockRestore();
});

const seconds = 1_763_714_567;
const at = seconds * 1_000;
const options = { secret: "whsec_secret" };
const timed = { ...options, now: () => at };
const hex = "0".repeat(64);
const base64 = Buffer.alloc(32).toString("base64");
const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");

function verify(provider: WebhookProvider, headers: Record<string, string>, text: string) {
  const request = new Request("https://example.com/hooks", { method: "POST", headers });
  return provider.verify(request, new TextEncoder().encode(text));
}

describe.each([
  ["stripe", "id", stripe(timed), { "stripe-signature": `t=${seconds},v1=${hex}` }],
  [
    "slack",
    "event_id",
    slack(timed),
    { "x-slack-signature": `v0=${hex}`, "x-slack-request-timestamp": String(seconds) },
  ],
  [
    "discord",
    "id",
    discord({ publicKey: hex }),
    { "x-signature-ed25519": hex + hex, "x-signature-timestamp": String(seconds) },
  ],
  ["paddle", "event_id", paddle(timed), { "paddle-signature": `ts=${seconds};h1=${hex}` }],
  [
    "square",
    "event_id",
    square({ ...options, url: "https://example.com/hooks" }),
    { "x-square-hmacsha256-signature": base64 },
  ],
] as const)("the id of %s, from the body's %s", (_, field, provider, headers) => {
  const idOf = async (text: string) => (await verify(provider, headers, text)).id;

  it("is any valid id", async () => {
    for (const id of ["x", "evt_1", "~".repeat(255)]) {
      expect(await idOf(JSON.stringify({ [field]: id, more: 1 }))).toBe(id);
    }
  });

  it.each([
    ["no such field", "{}"],
    ["a number", `{"${field}":5}`],
    ["an empty string", `{"${field}":""}`],
    ["a long string", JSON.stringify({ [field]: "~".repeat(256) })],
    ["a string that is not ASCII", JSON.stringify({ [field]: "é" })],
    ["a list", JSON.stringify([field])],
    ["null", "null"],
    ["a string", `"${field}"`],
    ["a form", `${field}=1&text=%2F`],
    ["nothing", ""],
  ])("is the body's hash if the body has %s", async (_, text) => {
    expect(await idOf(text)).toBe(sha256(text));
  });
});

describe.each([
  [
    "github",
    github as (options: object) => WebhookProvider,
    { "x-hub-signature-256": `sha256=${hex}` },
    "x-github-delivery",
  ],
  [
    "shopify",
    (given: object) => shopify({ ...(given as typeof options), topics: "orders/paid" }),
    { "x-shopify-hmac-sha256": base64, "x-shopify-topic": "orders/paid", "x-shopify-shop-domain": "a" },
    "x-shopify-webhook-id",
  ],
  [
    "linear",
    (given: object) => linear({ ...(given as typeof options), now: () => at }),
    { "linear-signature": hex },
    "linear-delivery",
  ],
] as const)("the id of %s", (_, make, headers, idHeader) => {
  const body = `{"n":1,"webhookTimestamp":${at}}`;
  const of = (id: "header" | "body" | undefined, more: Record<string, string>, text = body) =>
    verify(make({ ...options, id }), { ...headers, ...more }, text);

  it('is the unsigned header with id: "header"', async () => {
    const verified = await of("header", { [idHeader]: "one" });
    expect(verified).toMatchObject({ id: "one", idSigned: false, deliveryId: "one" });
    await expect(of("header", {})).rejects.toMatchObject({ reason: "missing-header" });
  });

  it('depends on the body and on no header with id: "body"', async () => {
    const first = await of(undefined, {});
    expect(first.id).toMatch(/^[0-9a-f]{64}$/);
    expect(first.idSigned).toBe(true);
    expect(await of("body", {})).toEqual(first);
    expect(await of(undefined, { [idHeader]: "one" })).toEqual({ ...first, deliveryId: "one" });
    expect(await of("body", { [idHeader]: "not an id" })).toEqual(first);
    expect((await of("body", {}, body.replace("1", "2"))).id).not.toBe(first.id);
  });

  it("has no other source", () => {
    for (const id of ["", "hash", "headers", "nobody", null, ["body"], 1]) {
      expect(() => make({ ...options, id: id as "body" })).toThrow(TypeError);
      expect(() => make({ ...options, id: id as "body" })).toThrow(/^id /);
    }
  });
});

describe("bodyHash", () => {
  it("is SHA-256 in lower-case hex", async () => {
    expect(await bodyHash(new Uint8Array())).toBe(sha256(""));
    for (const text of ["abc", "\u0000\u0001", "Zażółć"]) {
      expect(await bodyHash(new TextEncoder().encode(text))).toBe(sha256(text));
    }
    expect(await bodyHash(new TextEncoder().encode("xabcx").subarray(1, 4))).toBe(sha256("abc"));
  });

  it("is the id of a body that GitHub sent", async () => {
    const headers = { "x-hub-signature-256": `sha256=${hex}` };
    const verified = await verify(github({ ...options, name: "github" }), headers, '{"zen":"…"}');
    expect(verified).toEqual({ id: sha256('{"zen":"…"}'), idSigned: true });
  });
});

describe("secretTag", () => {
  const verified = (provider: WebhookProvider) =>
    verify(provider, { "x-hub-signature-256": `sha256=${hex}` }, "{}").then(({ secretTags }) => secretTags);

  it("is given for each secret, in order, unless the provider has a name of its own", async () => {
    const tags = await verified(github({ secret: ["one", "two"] }));
    expect(tags).toEqual([await secretTag("one"), await secretTag("two")]);
    expect(new Set(tags).size).toBe(2);
    for (const tag of tags!) expect(tag).toMatch(/^[0-9a-f]{32}$/);
    expect(await verified(github({ secret: "two" }))).toEqual([tags![1]]);
    expect(await verified(github({ secret: "two", name: "github" }))).toBe(undefined);
  });

  it("never changes: it is part of the keys of deliveries that were handled before", async () => {
    const tag = (secret: string | Uint8Array) =>
      createHmac("sha256", secret).update("redlock-edge: scope of a secret").digest("hex").slice(0, 32);
    for (const secret of ["one", "żółć", Uint8Array.of(0, 255)])
      expect(await secretTag(secret)).toBe(tag(secret));
    expect(await secretTag("one")).toBe("d3dff88fb95ab9e15c27b395f87363a0");
  });

  it("is one-way: it contains neither the secret nor the secret's hash", async () => {
    const tag = await secretTag("one");
    expect(tag).not.toContain(Buffer.from("one").toString("hex"));
    expect(tag).not.toBe(sha256("one").slice(0, 32));
  });

  it("is made of public keys, or of the secrets alone if there are both", async () => {
    const key = (fill: number) => Buffer.alloc(32, fill).toString("base64");
    const headers = {
      "webhook-id": "m1",
      "webhook-timestamp": String(seconds),
      "webhook-signature": `v1,${base64} v1a,${Buffer.alloc(64).toString("base64")}`,
    };
    const tagsOf = async (given: Parameters<typeof standardWebhooks>[0]) =>
      (await verify(standardWebhooks({ now: () => at, ...given }), headers, "{}")).secretTags;
    expect(await tagsOf({ secret: key(1), publicKey: key(2) })).toEqual([
      await secretTag(Buffer.alloc(32, 1)),
    ]);
    expect(await tagsOf({ publicKey: key(2) })).toEqual([await secretTag(Buffer.alloc(32, 2))]);
  });
});
