import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it, type MockInstance, vi } from "vitest";
import {
  bodyHash,
  discord,
  github,
  linear,
  shopify,
  slack,
  stripe,
  type WebhookProvider,
} from "../../src/webhooks/index.ts";

// What the ids of deliveries are, once their signature holds: here every signature does.
let check: MockInstance;
beforeAll(() => {
  check = vi.spyOn(crypto.subtle, "verify").mockResolvedValue(true);
});
afterAll(() => check.mockRestore());

const seconds = 1_763_714_567;
const at = seconds * 1_000;
const options = { secret: "whsec_secret", now: () => at };
const hex = "0".repeat(64);
const base64 = Buffer.alloc(32).toString("base64");
const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");

function verify(provider: WebhookProvider, headers: Record<string, string>, text: string) {
  const request = new Request("https://example.com/hooks", { method: "POST", headers });
  return provider.verify(request, new TextEncoder().encode(text));
}

describe.each([
  ["stripe", "id", stripe(options), { "stripe-signature": `t=${seconds},v1=${hex}` }],
  [
    "slack",
    "event_id",
    slack(options),
    { "x-slack-signature": `v0=${hex}`, "x-slack-request-timestamp": String(seconds) },
  ],
  [
    "discord",
    "id",
    discord({ publicKey: hex }),
    { "x-signature-ed25519": hex + hex, "x-signature-timestamp": String(seconds) },
  ],
] as const)("the id of %s, from the body's %s", (_, field, provider, headers) => {
  const idOf = async (text: string) => (await verify(provider, headers, text)).id;

  it("is any that can be an id", async () => {
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
  ])("is the hash of the body where that has %s", async (_, text) => {
    expect(await idOf(text)).toBe(sha256(text));
  });
});

describe.each([
  ["github", github, { "x-hub-signature-256": `sha256=${hex}` }, "x-github-delivery"],
  [
    "shopify",
    shopify,
    { "x-shopify-hmac-sha256": base64, "x-shopify-topic": "orders/paid", "x-shopify-shop-domain": "a" },
    "x-shopify-webhook-id",
  ],
  ["linear", linear, { "linear-signature": hex }, "linear-delivery"],
] as const)("the id of %s", (_, make, headers, idHeader) => {
  const body = `{"n":1,"webhookTimestamp":${at}}`;
  const of = (id: "header" | "body" | undefined, more: Record<string, string>, text = body) =>
    verify(make({ ...options, id }), { ...headers, ...more }, text);

  it("is its header, which nobody signed, unless another is asked for", async () => {
    for (const id of [undefined, "header"] as const) {
      const told = await of(id, { [idHeader]: "one" });
      expect(told).toMatchObject({ id: "one", idSigned: false });
      await expect(of(id, {})).rejects.toMatchObject({ reason: "missing-header" });
    }
  });

  it("is by the body the same with any header and with none, and another for another body", async () => {
    const first = await of("body", {});
    expect(first.id).toMatch(/^[0-9a-f]{64}$/);
    expect(first.idSigned).toBe(true);
    expect(await of("body", { [idHeader]: "one" })).toEqual(first);
    expect(await of("body", { [idHeader]: "not an id" })).toEqual(first);
    expect((await of("body", {}, body.replace("1", "2"))).id).not.toBe(first.id);
  });

  it("comes from nowhere else", () => {
    for (const id of ["", "hash", null, ["body"], 1]) {
      expect(() => make({ ...options, id: id as "body" })).toThrow(TypeError);
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
    const told = await verify(github({ ...options, id: "body" }), headers, '{"zen":"…"}');
    expect(told).toEqual({ id: sha256('{"zen":"…"}'), idSigned: true });
  });
});
