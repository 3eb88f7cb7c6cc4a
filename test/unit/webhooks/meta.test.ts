import { sign } from "@octokit/webhooks-methods";
import { describe, expect, it } from "vitest";
import { constantTimeEqual, meta, metaChallenge } from "../../../src/webhooks/index.ts";
import { outcome } from "./outcome.ts";
import { bytes, hash } from "./sender.ts";

const secret = "app secret of Meta".replaceAll(" ", "-");
// Meta escapes what is not ASCII, and signs what it sends.
const body =
  '{"object":"whatsapp_business_account","entry":[{"changes":[{"value":{"text":"\\u00e4\\/\\ud83d\\udd12"}}]}]}';

describe("meta", () => {
  it("accepts the scheme that GitHub took over from it, as GitHub's package signs it", async () => {
    const headers = { "X-Hub-Signature-256": await sign(secret, body) };
    const provider = meta({ secret, name: "meta" });
    expect(await outcome(provider, { headers, body })).toEqual({ id: hash(body), idSigned: true });
    expect(await outcome(provider, { headers, body: JSON.stringify(JSON.parse(body)) })).toBe(
      "bad-signature",
    );
  });

  it("does not fall back to SHA-1", async () => {
    const headers = { "x-hub-signature": `sha1=${"0".repeat(40)}` };
    expect(await outcome(meta({ secret }), { headers, body })).toBe("missing-header");
  });
});

describe("metaChallenge", () => {
  const ask = (query: Record<string, string>, method = "GET") =>
    metaChallenge(
      new Request(`https://shop.example/meta?${new URLSearchParams(query)}`, { method }),
      "token ż",
    );
  const genuine = { "hub.mode": "subscribe", "hub.verify_token": "token ż", "hub.challenge": "1158201444" };

  it("answers with the challenge, as text that is no page", async () => {
    const answer = ask(genuine);
    expect(answer?.status).toBe(200);
    expect(await answer?.text()).toBe("1158201444");
    expect(answer?.headers.get("content-type")).toBe("text/plain");
    expect(answer?.headers.get("x-content-type-options")).toBe("nosniff");
  });

  it.each([
    ["another token", { ...genuine, "hub.verify_token": "token z" }],
    ["the beginning of the token", { ...genuine, "hub.verify_token": "token " }],
    ["a longer token", { ...genuine, "hub.verify_token": "token żx" }],
    ["no token", { "hub.mode": "subscribe", "hub.challenge": "1" }],
    ["no challenge", { "hub.mode": "subscribe", "hub.verify_token": "token ż" }],
    ["a challenge that is none", { ...genuine, "hub.challenge": "<b> </b>" }],
  ])("answers 403 to %s", async (_, query) => {
    const answer = ask(query);
    expect([answer?.status, await answer?.text()]).toEqual([403, ""]);
  });

  it("is undefined for every other request", () => {
    expect(ask(genuine, "POST")).toBe(undefined);
    expect(ask({ ...genuine, "hub.mode": "unsubscribe" })).toBe(undefined);
    expect(ask({})).toBe(undefined);
  });

  it.each(["", undefined, 5])("needs a verify token, not %o", (token) => {
    const request = new Request("https://shop.example/meta");
    const error = { name: "TypeError", message: expect.stringMatching(/^verifyToken /) };
    expect(() => metaChallenge(request, token as string)).toThrow(expect.objectContaining(error));
  });
});

describe("constantTimeEqual", () => {
  it("compares every byte and the length", () => {
    for (const [one, other] of [
      ["", ""],
      ["a", "a"],
      ["żółć", "żółć"],
    ] as const) {
      expect(constantTimeEqual(bytes(one), bytes(other))).toBe(true);
    }
    for (const [one, other] of [
      ["a", "b"],
      ["a", ""],
      ["", "a"],
      ["ab", "a"],
      ["a", "a\0"],
      ["a\0", "a"],
      ["ba", "ca"],
    ] as const) {
      expect(constantTimeEqual(bytes(one), bytes(other)), `${one} ${other}`).toBe(false);
    }
  });
});
