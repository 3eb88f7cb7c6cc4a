import { expect, it } from "vitest";
import { hubspot } from "../../../src/webhooks/index.ts";
import { hmac, idOf, outcome } from "./outcome.ts";

const at = 1_763_714_567_890;
const url = "https://shop.example/hubspot?hubId=1";
const provider = (options: Partial<Parameters<typeof hubspot>[0]> = {}) =>
  hubspot({ secret: "39ad4b5c", name: "hubspot", now: () => at, ...options });

/** A delivery with the signature of a text. */
const arrival = (signed: string, body: string, to = url) => ({
  headers: {
    "x-hubspot-signature-v3": hmac("39ad4b5c", signed, "base64"),
    "x-hubspot-request-timestamp": String(at),
  },
  body,
  url: to,
});
const genuine = (body: string, to = url) => arrival(`POST${to}${body}${at}`, body, to);

it("signs the method and the URL as it was given", async () => {
  const to = `${url}&email=a@b.c`;
  const encoded = { ...genuine("[]", to), url: to.replace("@", "%40") };
  expect(await outcome(provider(), encoded)).toMatchObject({ timestamp: at });
  expect(await outcome(provider(), { ...genuine("[]"), method: "PUT" })).toBe("bad-signature");
});

it("decodes the characters of HubSpot's list in the URL, and no others", async () => {
  const encoded =
    "https://shop.example/x?a=%3A%2F%3F%40%21%24%27%28%29%2A%2C%3B&b=%26%3D%2B%25%23%22%C5%BC%2f";
  const decoded = "https://shop.example/x?a=:/?@!$'()*,;&b=%26%3D%2B%25%23%22%C5%BC/";
  const delivery = arrival(`POST${decoded}[]${at}`, "[]", "http://10.0.0.1/");
  for (const given of [encoded, () => encoded]) {
    expect(await outcome(provider({ url: given }), delivery)).toMatchObject({ timestamp: at });
  }
});

it("recognises a retry, whose attempts are counted, and no other body", async () => {
  const event = (attempt: number, id = "9007199254740993") =>
    `[{"eventId":${id},"attemptNumber":${attempt},"text":"\\"attemptNumber\\":1"}, {"attemptNumber" : ${attempt}}]`;
  const first = await idOf(provider(), genuine(event(0)));
  expect(await idOf(provider(), genuine(event(12)))).toBe(first);
  // The same number once it is parsed.
  expect(await idOf(provider(), genuine(event(0, "9007199254740992")))).not.toBe(first);
  expect(await idOf(provider(), genuine(event(0).replace(':1"}', ':2"}')))).not.toBe(first);
  expect(await idOf(provider(), genuine(event(0), `${url}&x=1`))).not.toBe(first);
  expect(await idOf(provider(), genuine(""))).toMatch(/^[0-9a-f]{64}$/);
});

it("refuses a genuine delivery whose URL, body and time are split at other places", async () => {
  const body = '[{"eventId":1}]';
  const { headers } = genuine(body);
  for (const [to, rest] of [
    [`${url}[`, '{"eventId":1}]'],
    [`${url}${body}`, ""],
    [url.slice(0, -1), `1${body}`],
  ] as const) {
    expect(await outcome(provider(), { headers, body: rest, url: to }), to).toBe("bad-signature");
    expect(await outcome(provider({ url }), { headers, body: rest, url: to }), to).toBe("bad-signature");
  }
  // A request without a body, whose URL ends in JSON; and a body that could be the end of a URL.
  const bare = `${url}&appId=1234`;
  for (const [to, rest] of [
    [`${url}&appId=12`, "34"],
    [`${url}&appId=`, "1234"],
  ] as const) {
    expect(await outcome(provider(), { headers: genuine("", bare).headers, body: rest, url: to })).toBe(
      "bad-signature",
    );
  }
  expect(await outcome(provider(), { headers: genuine("[1]").headers, body: "", url: `${url}[1]` })).toBe(
    "bad-signature",
  );
  for (const time of [String(at).slice(1), `1${at}`, `${at} 1`, "1763714567", "-763714567890", "1e12"]) {
    const moved = { ...headers, "x-hubspot-request-timestamp": time };
    expect(await outcome(provider(), { headers: moved, body, url }), time).toBe("malformed-header");
  }
});
