import { expect, it } from "vitest";
import { qstash } from "../../../src/webhooks/index.ts";
import { hash, hmac, outcome } from "./outcome.ts";

const seconds = 1_763_714_567;
const body = '{"hello":"world"}';
const url = "https://shop.example/qstash";
const digest = `${Buffer.from(hash(body), "hex").toString("base64url")}=`;
const claims = { iss: "Upstash", sub: url, nbf: seconds, exp: seconds + 300, body: digest };
const base64url = (text: string) => Buffer.from(text).toString("base64url");

/** A JWT as QStash makes it, with some claims or a head of its own. */
function jwt(own: object = {}, head: object = { alg: "HS256", typ: "JWT" }): string {
  const signed = `${base64url(JSON.stringify(head))}.${base64url(JSON.stringify({ ...claims, ...own }))}`;
  return `${signed}.${hmac("sig_1", signed, "base64url")}`;
}

type Options = Parameters<typeof qstash>[0];
const provider = (options: Partial<Options> = {}) =>
  qstash({ secret: "sig_1", id: "header", name: "qstash", now: () => seconds * 1_000, ...options });

const send = (token: string, options: Partial<Options> = {}) =>
  outcome(provider(options), {
    headers: { "upstash-signature": token, "upstash-message-id": "msg_1" },
    body,
  });

const accepted = { id: "msg_1", timestamp: seconds * 1_000, deliveryId: "msg_1", idSigned: false };

it.each([
  ["none", { alg: "none" }],
  ["another HMAC", { alg: "HS512" }],
  ["a public key", { alg: "RS256" }],
  ["no algorithm", {}],
  ["one in a list", { alg: ["HS256"] }],
  ["an extension that must be understood", { alg: "HS256", crit: ["b64"], b64: false }],
])("refuses a JWT that names %s, although the secret signed it", async (_, head) => {
  expect(await send(jwt({}, head))).toBe("bad-signature");
});

it("refuses a JWT with a part that was exchanged", async () => {
  const [head, payload, signature] = jwt().split(".");
  const none = base64url('{"alg":"none"}');
  const later = base64url(JSON.stringify({ ...claims, exp: seconds + 9_000 }));
  for (const token of [`${head}.${later}.${signature}`, `${none}.${payload}.${signature}`]) {
    expect(await send(token), token).toBe("bad-signature");
  }
});

it("compares issuer, hash and URL with exactly these texts", async () => {
  for (const iss of [undefined, "upstash", "Upstash ", ["Upstash"], null]) {
    expect(await send(jwt({ iss }))).toBe("bad-signature");
  }
  expect(await send(jwt({ body: digest.slice(0, -1) }))).toEqual(accepted);
  for (const other of [undefined, "", [digest], `${digest}=`, digest.slice(0, -2), hash(body)]) {
    expect(await send(jwt({ body: other }))).toBe("bad-signature");
  }
  for (const given of [url, () => url]) expect(await send(jwt(), { url: given })).toEqual(accepted);
  for (const sub of [undefined, "", `${url}/`, [url]]) {
    expect(await send(jwt({ sub }), { url })).toBe("bad-signature");
    // Not compared unless it was given.
    expect(await send(jwt({ sub }))).toEqual(accepted);
  }
});

it("reads no JWT that is longer than 8 192 characters: nothing has signed it yet", async () => {
  expect(await send(jwt({ more: "x".repeat(8_192) }))).toBe("malformed-header");
});

it("refuses a JWT without nbf or exp", async () => {
  const at = (nbf: unknown, exp: unknown) => send(jwt({ nbf, exp }));
  for (const missing of [undefined, null, String(seconds), Number.NaN]) {
    expect(await at(missing, seconds + 300)).toBe("outside-tolerance");
    expect(await at(seconds, missing)).toBe("outside-tolerance");
  }
});

it("has the message's id, which is not signed, or the body's hash", async () => {
  const headers = { "upstash-signature": jwt() };
  const verified = { id: hash(body), timestamp: seconds * 1_000, idSigned: true };
  expect(await outcome(provider({ id: "body" }), { headers, body })).toEqual(verified);
  expect(await send(jwt(), { id: "body" })).toEqual({ ...verified, deliveryId: "msg_1" });
});
