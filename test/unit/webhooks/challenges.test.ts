import { describe, expect, test } from "vitest";
import { metaChallenge, zoomChallenge } from "../../../src/webhooks/index.ts";
import { bytes } from "./outcome.ts";

// How senders ask whether an address is theirs to send to.

describe("zoomChallenge", () => {
  const secret = "qlb5CvrHSAm9zI7EX2U6tA";
  const challenge = (plainToken: unknown) =>
    bytes(JSON.stringify({ event: "endpoint.url_validation", event_ts: 1, payload: { plainToken } }));

  test("answers with the token and its HMAC, as @zoom/rivet 0.4.0 does", async () => {
    const answer = await zoomChallenge(challenge("qgg8vlvZRS6UYooatFL8Aw"), secret);
    expect(await answer?.json()).toEqual({
      plainToken: "qgg8vlvZRS6UYooatFL8Aw",
      encryptedToken: "859c10f856703ee0a8e51637032cc30c27453c69af29e8432de78fe2f3a55cf7",
    });
  });

  test.each(["v0:1658940994:{}", "v0:1", "a b", "", "x".repeat(256), 5.5, null, undefined, {}])(
    "signs no text that could be a delivery: %j",
    async (token) => {
      expect(await zoomChallenge(challenge(token), secret)).toBe(undefined);
    },
  );

  test.each(["", "null", '{"event":"endpoint.url_validation"}', '{"payload":{"plainToken":"a"}}'])(
    "is undefined for another body: %s",
    async (text) => {
      expect(await zoomChallenge(bytes(text), secret)).toBe(undefined);
    },
  );
});

describe("metaChallenge", () => {
  const ask = (query: Record<string, string>, method = "GET") =>
    metaChallenge(
      new Request(`https://shop.example/meta?${new URLSearchParams(query)}`, { method }),
      "token ż",
    );
  const genuine = { "hub.mode": "subscribe", "hub.verify_token": "token ż", "hub.challenge": "1158201444" };

  test("answers with the challenge, as text that is no page", async () => {
    const answer = ask(genuine);
    expect([answer?.status, await answer?.text()]).toEqual([200, "1158201444"]);
    expect(Object.fromEntries(answer!.headers)).toEqual({
      "content-type": "text/plain",
      "x-content-type-options": "nosniff",
    });
  });

  test.each([
    ["another token", { ...genuine, "hub.verify_token": "token ź" }],
    ["the beginning of the token", { ...genuine, "hub.verify_token": "token " }],
    ["no token", { "hub.mode": "subscribe", "hub.challenge": "1" }],
    ["no challenge", { "hub.mode": "subscribe", "hub.verify_token": "token ż" }],
    ["a challenge that is none", { ...genuine, "hub.challenge": "<b> </b>" }],
  ])("answers 403 to %s", async (_, query) => {
    const answer = ask(query);
    expect([answer?.status, await answer?.text()]).toEqual([403, ""]);
  });

  test("is undefined for every other request", () => {
    expect(ask(genuine, "POST")).toBe(undefined);
    expect(ask({ ...genuine, "hub.mode": "unsubscribe" })).toBe(undefined);
  });
});

test("a secret and a verify token must be set", async () => {
  for (const none of ["", undefined] as string[]) {
    await expect(zoomChallenge(bytes("{}"), none)).rejects.toThrow(/^secret is missing/);
    const request = new Request("https://shop.example/meta");
    expect(() => metaChallenge(request, none)).toThrow(/^verifyToken is missing/);
  }
  await expect(zoomChallenge(bytes("{}"), "a b")).rejects.toThrow(/^secret must/);
});
