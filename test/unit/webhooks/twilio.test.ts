import { expect, it } from "vitest";
import { twilio } from "../../../src/webhooks/index.ts";
import { hash, hmac, idOf, outcome } from "./outcome.ts";

const url = "https://mycompany.com/myapp.php?foo=1&bar=2";
const provider = (options: Partial<Parameters<typeof twilio>[0]> = {}) =>
  twilio({ secret: "12345", name: "twilio", ...options });

/** A delivery with the signature of a text. */
const arrival = (signed: string, body: string | Uint8Array, to = url) => ({
  headers: { "x-twilio-signature": hmac("12345", signed, "base64", "sha1") },
  body,
  url: to,
});

const json = '{"property": "value", "boolean": true}';
const digest = hash(json);

it("has one id for all spellings of what is signed: none of them is a new delivery", async () => {
  const signed = `${url}A1B2`;
  for (const body of ["A=1&B=2", "B=2&A=1", "%41=1&B=%32", "&A=1&&B=2", "A=1&A=1&B=2", "A1B2", "A1=B2"]) {
    expect(await idOf(provider(), arrival(signed, body)), body).toBe(hash(signed));
  }
  // A question mark at the beginning belongs to the field's name, and so does a byte order mark.
  for (const body of ["?A=1&B=2", "\ufeffA=1&B=2"]) {
    expect(await outcome(provider(), arrival(signed, body))).toBe("bad-signature");
  }
  expect(await idOf(provider(), arrival(signed, "B=2", `${url}A1`))).toBe(hash(signed));
  expect(await outcome(provider({ url }), arrival(signed, "B=2", `${url}A1`))).toBe("bad-signature");
});

it("refuses a JSON delivery whose body is not bound by a hash at the end of the URL", async () => {
  for (const query of [
    `?bodySHA256=${digest}&x=1`,
    `?bodySHA256=${digest.toUpperCase()}`,
    `?bodysha256=${digest}`,
    `?bodySHA256=${digest}0`,
    "?bodySHA256=",
  ]) {
    const to = `https://mycompany.com/hook${query}`;
    for (const body of [json, ""])
      expect(await outcome(provider(), arrival(to, body, to)), to).toBe("bad-signature");
  }
  // The hash of another body, and a form that ends like a URL with a hash.
  const other = `${url}&bodySHA256=${hash("{}")}`;
  for (const body of [json, "", "A=1"]) {
    expect(await outcome(provider(), arrival(other, body, other))).toBe("bad-signature");
  }
  const text = `Body=x&Z=%26bodySHA256%3D${digest}`;
  const signed = `${url}BodyxZ&bodySHA256=${digest}`;
  expect(await outcome(provider(), arrival(signed, text))).toMatchObject({ id: hash(signed) });
  // Anyone may send such a text; with the URL as an option, the rest of it is no URL.
  expect(await outcome(provider({ url }), arrival(signed, json, signed))).toBe("bad-signature");
});

it.each([
  ["https://shop.example/hook?a=1", "https://shop.example:443/hook?a=1"],
  ["http://shop.example", "http://shop.example:80"],
  ["https://user:1234@shop.example/hook", "https://user:1234@shop.example:443/hook"],
  ["https://[::1]/hook", "https://[::1]:443/hook"],
])("takes %s and %s as one URL: Twilio signs either, and both are one delivery", async (one, other) => {
  const ids = [one, other].flatMap((given) =>
    [one, other].map((signed) => idOf(provider({ url: given }), arrival(`${signed}A1`, "A=1"))),
  );
  expect(new Set(await Promise.all(ids)).size).toBe(1);
  const elsewhere = arrival(`${one.replace("shop", "shop2").replace("[::1]", "[::2]")}A1`, "A=1");
  expect(await outcome(provider({ url: one }), elsewhere)).toBe("bad-signature");
});

it("takes a port that is not the standard one as signed or left out", async () => {
  const given = "https://shop.example:8443/hook";
  const portless = "https://shop.example/hook";
  for (const signed of [given, portless]) {
    expect(await idOf(provider({ url: given }), arrival(`${signed}A1`, "A=1"))).toBe(hash(`${portless}A1`));
  }
});

it("signs the URL as it was given, not as a proxy or a parser spells it", async () => {
  const given = "https://shop.example/hook?name='O'";
  const behind = { ...arrival(`${given}A1`, "A=1", "http://10.0.0.1:8080/hook?name=%27O%27") };
  for (const option of [given, () => given]) {
    expect(await outcome(provider({ url: option }), behind)).toMatchObject({ idSigned: true });
  }
  expect(await outcome(provider(), behind)).toBe("bad-signature");
  const unicode = "https://shop.example/żółć?q=%C3%A9";
  const encoded = new Request(unicode).url;
  expect(await outcome(provider(), arrival(encoded, "", unicode))).toMatchObject({ id: hash(encoded) });
});

it("adds the hash to a URL that was given without it, with or without a query", async () => {
  for (const [given, signed] of [
    ["http://shop.example/hook", `http://shop.example/hook?bodySHA256=${digest}`],
    ["https://shop.example/hook?a=1", `https://shop.example/hook?a=1&bodySHA256=${digest}`],
    [`https://shop.example/hook?bodySHA256=${digest}`, `https://shop.example/hook?bodySHA256=${digest}`],
  ] as const) {
    const behind = arrival(signed, json, `http://10.0.0.1/hook?bodySHA256=${digest}`);
    for (const option of [given, () => given]) {
      expect(await outcome(provider({ url: option }), behind)).toMatchObject({ id: hash(signed) });
    }
  }
});

it.each([
  [1_000, expect.objectContaining({ idSigned: true })],
  [1_001, "bad-signature"],
])("of a form with %i fields: %s", async (count, expected) => {
  const names = Array.from({ length: count }, (_, index) => `a${index}`);
  const signed = url + [...names].sort().join("");
  expect(await outcome(provider(), arrival(signed, names.join("&")))).toEqual(expected);
});

it("takes a body that is not UTF-8 as what its decoder reads", async () => {
  const body = Uint8Array.of(0x41, 0x3d, 0xff);
  expect(await outcome(provider(), arrival(`${url}A\ufffd`, body))).toMatchObject({ idSigned: true });
});
