import { createHmac } from "node:crypto";
import { describe, expect, it } from "vitest";
import { twilio } from "../../../src/webhooks/index.ts";
import { idOf, outcome } from "./outcome.ts";
import { hash } from "./sender.ts";

const secret = "12345";
const url = "https://mycompany.com/myapp.php?foo=1&bar=2";
const sign = (text: string) => createHmac("sha1", secret).update(text).digest("base64");
const provider = (options: Partial<Parameters<typeof twilio>[0]> = {}) =>
  twilio({ secret, name: "twilio", ...options });

/** A delivery with the signature of a text. */
const arrival = (signed: string, body: string | Uint8Array, to = url) => ({
  headers: { "x-twilio-signature": sign(signed) },
  body,
  url: to,
});

// Vectors of twilio 6.2.0's tests, and made with its getExpectedTwilioSignature.
const form =
  "CallSid=CA1234567890ABCDE&Caller=%2B14158675309&Digits=1234&From=%2B14158675309&To=%2B18005551212";
const fields = "CallSidCA1234567890ABCDECaller+14158675309Digits1234From+14158675309To+18005551212";
const json = '{"property": "value", "boolean": true}';
const jsonUrl = `${url}&bodySHA256=0a1ff7634d9ab3b95db5c9a2dfe9416e41502b283a80c7cf19632632f96e6620`;

describe("twilio", () => {
  it("accepts the form of Twilio's example", async () => {
    const headers = { "X-Twilio-Signature": "RSOYDt4T1cUTdK1PDd93/VVr8B8=" };
    const verified = { id: hash(url + fields), idSigned: true };
    expect(await outcome(provider(), { headers, body: form, url })).toEqual(verified);
  });

  it("accepts the JSON of Twilio's example", async () => {
    const headers = { "X-Twilio-Signature": "a9nBmqA0ju/hNViExpshrM61xv4=" };
    const verified = { id: hash(jsonUrl), idSigned: true };
    expect(await outcome(provider(), { headers, body: json, url: jsonUrl })).toEqual(verified);
    expect(await outcome(provider({ url }), { headers, body: json, url: jsonUrl })).toEqual(verified);
    expect(await outcome(provider({ url: () => jsonUrl }), { headers, body: json, url: jsonUrl })).toEqual(
      verified,
    );
    for (const body of ["", "{}", `${json} `, form]) {
      expect(await outcome(provider(), { headers, body, url: jsonUrl })).toBe("bad-signature");
    }
  });

  it("sorts fields and their values, and signs equal values once, as twilio 6.2.0 does", async () => {
    const to = "https://mycompany.com/myapp.php";
    const headers = { "x-twilio-signature": "o7LLBeue7utBZU27RFslKWggGo8=" };
    const text = "Za%C5%BC%C3%B3%C5%82%C4%87+%2B+%26+%3D+%F0%9F%94%92";
    const body = `MessageStatus=sent&Media=b&Body=${text}&Media=a&Media=b`;
    expect(await outcome(provider(), { headers, body, url: to })).toMatchObject({ idSigned: true });
  });

  it("has one id for all spellings of what is signed: none of them is a new delivery", async () => {
    const signed = `${url}A1B2`;
    const ids = ["A=1&B=2", "B=2&A=1", "%41=1&B=%32", "&A=1&&B=2", "A=1&A=1&B=2", "A1B2", "A1=B2"].map(
      (body) => idOf(provider(), arrival(signed, body)),
    );
    // A question mark at the beginning belongs to the field's name.
    expect(await outcome(provider(), arrival(signed, "?A=1&B=2"))).toBe("bad-signature");
    // And so does a byte order mark.
    expect(await outcome(provider(), arrival(signed, "\ufeffA=1&B=2"))).toBe("bad-signature");
    expect(new Set(await Promise.all(ids))).toEqual(new Set([hash(signed)]));
    expect(await idOf(provider(), arrival(signed, "B=2", `${url}A1`))).toBe(hash(signed));
    expect(await outcome(provider({ url }), arrival(signed, "B=2", `${url}A1`))).toBe("bad-signature");
  });

  it("refuses a JSON delivery whose body is not bound by a hash at the end of the URL", async () => {
    const digest = hash(json);
    for (const query of [
      `?bodySHA256=${digest}&x=1`,
      `?bodySHA256=${digest.toUpperCase()}`,
      `?bodysha256=${digest}`,
      `?bodySHA256=${digest}0`,
      "?bodySHA256=",
    ]) {
      const to = `https://mycompany.com/hook${query}`;
      for (const body of [json, ""]) {
        expect(await outcome(provider(), arrival(to, body, to)), to).toBe("bad-signature");
      }
    }
    // The hash of another body, and a form that ends like a URL with a hash.
    const other = `${url}&bodySHA256=${hash("{}")}`;
    expect(await outcome(provider(), arrival(other, json, other))).toBe("bad-signature");
    const text = `Body=x&Z=%26bodySHA256%3D${digest}`;
    const signed = `${url}BodyxZ&bodySHA256=${digest}`;
    expect(await outcome(provider(), arrival(signed, text))).toMatchObject({ id: hash(signed) });
    // Anyone may send such a text; with the URL as an option, the rest of it is no URL.
    const moved = arrival(signed, json, signed);
    expect(await outcome(provider({ url }), moved)).toBe("bad-signature");
  });

  it("signs the URL as it was given, not as a proxy or a parser spells it", async () => {
    const given = "https://shop.example/hook?name='O'";
    const behind = { ...arrival(`${given}A1`, "A=1", "http://10.0.0.1:8080/hook?name=%27O%27") };
    expect(await outcome(provider({ url: given }), behind)).toMatchObject({ idSigned: true });
    expect(await outcome(provider({ url: () => given }), behind)).toMatchObject({ idSigned: true });
    expect(await outcome(provider(), behind)).toBe("bad-signature");
    const unicode = "https://shop.example/żółć?q=%C3%A9";
    const encoded = new Request(unicode).url;
    expect(await outcome(provider(), arrival(encoded, "", unicode))).toMatchObject({ id: hash(encoded) });
  });

  it("adds the hash to a URL that was given without it, with or without a query", async () => {
    const digest = hash(json);
    for (const [given, signed] of [
      ["http://shop.example/hook", `http://shop.example/hook?bodySHA256=${digest}`],
      ["https://shop.example/hook?a=1", `https://shop.example/hook?a=1&bodySHA256=${digest}`],
    ] as const) {
      const behind = arrival(signed, json, `http://10.0.0.1/hook?bodySHA256=${digest}`);
      expect(await outcome(provider({ url: given }), behind)).toMatchObject({ id: hash(signed) });
    }
  });

  it('has the unsigned token as id with id: "header"', async () => {
    const { headers, ...rest } = arrival(`${url}A1`, "A=1");
    const named = { ...rest, headers: { ...headers, "I-Twilio-Idempotency-Token": "t-1" } };
    const byHeader = provider({ id: "header" });
    expect(await outcome(byHeader, named)).toEqual({ id: "t-1", deliveryId: "t-1", idSigned: false });
    expect(await outcome(byHeader, { headers, ...rest })).toBe("missing-header");
    expect(await outcome(provider(), named)).toEqual({
      id: hash(`${url}A1`),
      deliveryId: "t-1",
      idSigned: true,
    });
  });

  it("reads a form of megabytes in one pass, before it knows who sent it", async () => {
    const names = Array.from({ length: 60_000 }, (_, index) => `a${index}`);
    const refused = await outcome(provider(), arrival("", names.join("&")));
    expect(refused).toBe("bad-signature");
    const signed = url + [...names].sort().join("");
    expect(await outcome(provider(), arrival(signed, names.join("&")))).toMatchObject({ idSigned: true });
  });

  it("takes a body that is not UTF-8 as what its decoder reads", async () => {
    const bytes = Uint8Array.of(0x41, 0x3d, 0xff);
    expect(await outcome(provider(), arrival(`${url}A\ufffd`, bytes))).toMatchObject({ idSigned: true });
  });
});
