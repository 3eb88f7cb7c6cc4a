import { expect, test } from "vitest";
import { type Arrival, bytes, hmac, outcome } from "./outcome.ts";
import { make, providerOf, vectorOf, vectors } from "./vectors.ts";

// What is special of one row of the table of senders, beyond its vectors.

/** What a sender's provider makes of its genuine delivery, changed on the way. */
function send(sender: string, changed: Partial<Arrival> = {}, options: object = {}) {
  const vector = vectorOf(sender);
  const headers = { ...vector.headers, ...changed.headers };
  return outcome(providerOf(vector, { name: "n", ...options }), { ...vector, ...changed, headers });
}

test("Discord's time and body are split at no other place", async () => {
  // Both are hex and digits, so a signature of the text below holds for each of its splits.
  const { headers, body } = vectorOf("discord");
  const text = headers["X-Signature-Timestamp"] + body;
  for (const length of [9, 11]) {
    const moved = { headers: { "X-Signature-Timestamp": text.slice(0, length) }, body: text.slice(length) };
    expect(await send("discord", moved)).toBe("malformed-header");
  }
  expect(await send("discord", { headers: { "X-Signature-Timestamp": "1e9" } })).toBe("malformed-header");
});

test("Discord's public key may be in upper case", async () => {
  const publicKey = String(vectorOf("discord").options.publicKey).toUpperCase();
  expect(await send("discord", {}, { publicKey })).toMatchObject({ id: "1234567890" });
});

test.each([
  ["github", { "x-hub-signature": `sha1=${"0".repeat(40)}` }],
  ["meta", { "x-hub-signature": `sha1=${"0".repeat(40)}` }],
  ["square", { "x-square-signature": "AAAA" }],
  ["hubspot", { "x-hubspot-signature": "0".repeat(64), "x-hubspot-signature-version": "v1" }],
])("an older signature of %s counts for nothing", async (sender, headers) => {
  expect(await outcome(providerOf(vectorOf(sender)), { headers, body: "{}" })).toBe("missing-header");
});

test("7 days are enough for the retries of every sender that publishes how long it retries", () => {
  const retries = vectors.map((vector) => providerOf(vector).retries ?? 0);
  expect(Math.max(...retries)).toBe(7 * 86_400_000);
});

test("a body is checked byte for byte, also one that is not UTF-8", async () => {
  const github = make("github", { secret: "hush", name: "n" });
  // JSON.stringify would write the last one in another way.
  const texts = ["Déployé 🚀 👩‍🚀", '{ "price":1.0, "text":"\\u00e9\\/" }\n'].map(bytes);
  for (const body of [new Uint8Array(), Uint8Array.of(0xff, 0xfe, 0x00, 0xc3), ...texts]) {
    const headers = { "x-hub-signature-256": `sha256=${hmac("hush", body)}` };
    expect(await outcome(github, { headers, body })).toMatchObject({ idSigned: true });
    expect(await outcome(github, { headers, body: Uint8Array.of(...body, 0) })).toBe("bad-signature");
  }
});

test("Square's request does not decide where the body begins", async () => {
  const { body, options } = vectorOf("square");
  const moved = { body: body.slice(1), url: `${options.url}{` };
  expect(await send("square", moved)).toBe("bad-signature");
  const url = ({ url: given }: Request) => given.replace("http:", "https:");
  // Where the request's own query is compared, the rest of the body is no object.
  const secret = String(options.secret);
  const withQuery = `${options.url}?tenant=1`;
  for (const rest of [body.slice(1), ""]) {
    const cut = { body: rest, url: withQuery + body.slice(0, body.length - rest.length) };
    const signed = {
      "x-square-hmacsha256-signature": hmac(secret, new Request(cut.url).url + rest, "base64"),
    };
    expect(await send("square", { ...cut, headers: signed }, { url })).toBe("bad-signature");
  }
  const atProxy = { url: String(options.url).replace("https:", "http:") };
  expect(await send("square", atProxy, { url })).toMatchObject({ idSigned: true });
  await expect(send("square", {}, { url: () => undefined })).rejects.toThrow(TypeError);
});

// Nothing separates the time from the id and the body.
test.each<[time: string, expected: number | string]>([
  ["2023-07-19T14:56:51Z", 51_000],
  ["2023-07-19T14:56:51.6Z", 51_600],
  ["2023-07-19T14:56:51.12Z", 51_120],
  ["2023-07-19T14:56:51.999999999Z", 51_999],
  ["2023-07-19T14:56:51+00:00", "malformed-header"],
  ["2023-07-19 14:56:51Z", "malformed-header"],
  ["2023-07-19T14:56:51.1234567890Z", "malformed-header"],
  ["2023-07-19T14:56:51.Z", "malformed-header"],
  ["1689778611", "malformed-header"],
  ["x2023-07-19T14:56:51Z", "malformed-header"],
  ["2023-07-19T14:56:51Zx", "malformed-header"],
  ["2023-13-19T14:56:51Z", "outside-tolerance"],
])("Twitch's time %s, which was signed, is %s", async (time, expected) => {
  const minute = Date.parse("2023-07-19T14:56Z");
  const secret = String(vectorOf("twitch").options.secret);
  const headers = {
    "Twitch-Eventsub-Message-Id": "tw-1",
    "Twitch-Eventsub-Message-Timestamp": time,
    "Twitch-Eventsub-Message-Signature": `sha256=${hmac(secret, `tw-1${time}{}`)}`,
  };
  const found = await send("twitch", { headers, body: "{}" }, { now: () => minute + 52_000 });
  if (typeof expected === "string") expect(found).toBe(expected);
  else expect(found).toMatchObject({ id: "tw-1", timestamp: minute + expected });
});
