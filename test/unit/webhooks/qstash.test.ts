import { describe, expect, it } from "vitest";
import { qstash } from "../../../src/webhooks/index.ts";
import { outcome } from "./outcome.ts";
import { claimsOf, hash, jwtOf } from "./sender.ts";

const seconds = 1_763_714_567;
const secret = "sig_5qHK4xHkGkVYyGyrzW6FjTLb3zCN";
const next = "sig_4pRj8fXPkLkGdgYrHqW2bXcZsMNa";
const body = '{"hello":"world"}';
const least: Parameters<typeof qstash>[0] = {
  secret,
  id: "header",
  name: "qstash",
  now: () => seconds * 1_000,
};
const claims = claimsOf(body, seconds);

function verify(token: string, options: Partial<Parameters<typeof qstash>[0]> = {}, text = body) {
  const headers = { "upstash-signature": token, "upstash-message-id": "msg_1" };
  return outcome(qstash({ ...least, ...options }), { headers, body: text });
}

const accepted = { id: "msg_1", timestamp: seconds * 1_000, deliveryId: "msg_1", idSigned: false };

describe("qstash", () => {
  it("accepts what jose 6.2.17 signs and @upstash/qstash 2.12.0 accepts", async () => {
    const token =
      "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJVcHN0YXNoIiwic3ViIjoiaHR0cHM6Ly9zaG9wLmV4YW1wbGUvcXN0YXNoIiwi" +
      "ZXhwIjoxNzYzNzE0ODY3LCJuYmYiOjE3NjM3MTQ1NjcsImlhdCI6MTc2MzcxNDU2NywianRpIjoiand0XzY3a3hYRDZVQkFrN0RxVTZoenVI" +
      "TURkWEZYZlAiLCJib2R5IjoiazZJNWNha1U1ZXJMOEtqU1VWVE5vd25Ed2NjdnU1a1UxSHhnODh0b0ZZZz0ifQ" +
      ".YZSQ2nN68CcPsK7X4CJq0fpq11NOGh-SuFFJqMtksyM";
    for (const keys of [[secret, next], [next, secret], secret]) {
      expect(await verify(token, { secret: keys, url: "https://shop.example/qstash" })).toEqual(accepted);
    }
    expect(await verify(token, { secret: next })).toBe("bad-signature");
    expect(await verify(token, { url: "https://shop.example/other" })).toBe("bad-signature");
    expect(await verify(token, {}, '{"hello":"World"}')).toBe("bad-signature");
  });

  it.each([
    ["none", { alg: "none" }],
    ["another HMAC", { alg: "HS512" }],
    ["a public key", { alg: "RS256" }],
    ["no algorithm", {}],
    ["one in a list", { alg: ["HS256"] }],
    ["an extension that must be understood", { alg: "HS256", crit: ["b64"], b64: false }],
  ])("refuses a JWT that names %s, although the secret signed it", async (_, head) => {
    expect(await verify(jwtOf(secret, claims, head))).toBe("bad-signature");
  });

  it("refuses a JWT without its signature, or with another part", async () => {
    const [head, payload, signature] = jwtOf(secret, claims).split(".");
    const none = Buffer.from('{"alg":"none"}').toString("base64url");
    for (const token of [
      `${head}.${payload}.`,
      `${none}.${payload}.`,
      `${head}.${payload}`,
      "",
      "..",
      `.${payload}.${signature}`,
      `${head}.${payload}.${signature}.`,
      `${head}.${payload}.${signature}.${signature}`,
      `${head}.!.${signature}`,
      `${head}.${payload}.!`,
    ]) {
      expect(await verify(token)).toBe(token === "" ? "missing-header" : "malformed-header");
    }
    const forged = Buffer.from(JSON.stringify({ ...claims, exp: seconds + 9_000 })).toString("base64url");
    expect(await verify(`${head}.${forged}.${signature}`)).toBe("bad-signature");
    expect(await verify(`${none}.${payload}.${signature}`)).toBe("bad-signature");
  });

  it("compares issuer, hash and URL with exactly these texts", async () => {
    for (const iss of [undefined, "upstash", "Upstash ", ["Upstash"], null]) {
      expect(await verify(jwtOf(secret, { ...claims, iss }))).toBe("bad-signature");
    }
    const digest = claims.body;
    expect(await verify(jwtOf(secret, { ...claims, body: digest.slice(0, -1) }))).toEqual(accepted);
    for (const other of [undefined, "", [digest], `${digest}=`, digest.slice(0, -2), hash(body)]) {
      expect(await verify(jwtOf(secret, { ...claims, body: other }))).toBe("bad-signature");
    }
    const url = claims.sub;
    expect(await verify(jwtOf(secret, claims), { url: () => url })).toEqual(accepted);
    for (const sub of [undefined, "", `${url}/`, [url]]) {
      expect(await verify(jwtOf(secret, { ...claims, sub }), { url })).toBe("bad-signature");
      expect(await verify(jwtOf(secret, { ...claims, sub }))).toEqual(accepted);
    }
  });

  it("is valid from nbf to exp, with 10 seconds between the clocks", async () => {
    const at = (nbf: unknown, exp: unknown, tolerance?: number) =>
      verify(jwtOf(secret, { ...claims, nbf, exp }), { tolerance });
    expect(await at(seconds + 10, seconds + 310)).toMatchObject({ timestamp: (seconds + 10) * 1_000 });
    expect(await at(seconds + 11, seconds + 311)).toBe("outside-tolerance");
    expect(await at(seconds - 310, seconds - 10)).toMatchObject({ id: "msg_1" });
    expect(await at(seconds - 311, seconds - 11)).toBe("outside-tolerance");
    expect(await at(seconds - 86_400, seconds)).toMatchObject({ id: "msg_1" });
    expect(await at(seconds + 2, seconds + 302, 1_000)).toBe("outside-tolerance");
    // The other way round, now is outside in both directions.
    expect(await at(seconds + 60, seconds - 60)).toBe("outside-tolerance");
    for (const missing of [undefined, null, String(seconds), Number.NaN]) {
      expect(await at(missing, seconds + 300)).toBe("outside-tolerance");
      expect(await at(seconds, missing)).toBe("outside-tolerance");
    }
  });

  it("has the message's id, which is not signed, or the body's hash", async () => {
    const token = jwtOf(secret, claims);
    const headers = { "upstash-signature": token };
    expect(await outcome(qstash(least), { headers, body })).toBe("missing-header");
    const byBody = qstash({ ...least, id: "body" });
    const verified = { id: hash(body), timestamp: seconds * 1_000, idSigned: true };
    expect(await outcome(byBody, { headers, body })).toEqual(verified);
    const named = { ...headers, "upstash-message-id": "msg_2" };
    expect(await outcome(byBody, { headers: named, body })).toEqual({ ...verified, deliveryId: "msg_2" });
  });
});
