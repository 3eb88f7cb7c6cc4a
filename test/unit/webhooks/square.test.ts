import { createHmac } from "node:crypto";
import { describe, expect, it } from "vitest";
import { type SquareOptions, square } from "../../../src/webhooks/index.ts";
import { outcome } from "./outcome.ts";
import { hash } from "./sender.ts";

const secret = "asdf1234";
const url = "https://example.com/webhook";
const provider = (options: Partial<SquareOptions> = {}) =>
  square({ secret, url, name: "square", ...options });
const signed = (text: string) => ({
  "x-square-hmacsha256-signature": createHmac("sha256", secret).update(text).digest("base64"),
});

describe("square", () => {
  it("accepts the example of square 46.0.0's tests", async () => {
    const body = '{"hello":"world"}';
    const headers = { "x-square-hmacsha256-signature": "2kRE5qRU2tR+tBGlDwMEw2avJ7QM4ikPYD/PJ3bd9Og=" };
    const verified = { id: hash(body), idSigned: true };
    expect(await outcome(provider(), { headers, body, url: "http://10.0.0.1/" })).toEqual(verified);
    expect(await outcome(provider({ url: `${url}/` }), { headers, body })).toBe("bad-signature");
  });

  it("does not let the request decide where the body begins", async () => {
    const headers = signed(`${url}{"a":{"event_id":"1"}}`);
    const moved = { headers, body: '"a":{"event_id":"1"}}', url: `${url}{` };
    expect(await outcome(provider(), moved)).toBe("bad-signature");
    for (const given of [undefined, "", "example.com", 5, new URL(url)]) {
      expect(() => provider({ url: given as string })).toThrow(/^url must be the URL/);
    }
  });

  it("takes the URL from a function, and ignores the older signature", async () => {
    const by = provider({ url: (request) => request.url.replace("http:", "https:") });
    const arrival = { headers: signed(`${url}{}`), body: "{}", url: "http://example.com/webhook" };
    expect(await outcome(by, arrival)).toMatchObject({ idSigned: true });
    const sha1 = createHmac("sha1", secret).update(`${url}{}`).digest("base64");
    expect(await outcome(by, { headers: { "x-square-signature": sha1 }, body: "{}" })).toBe("missing-header");
  });
});
