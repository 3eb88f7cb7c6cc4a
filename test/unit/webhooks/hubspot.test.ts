import { createHmac } from "node:crypto";
import { describe, expect, it } from "vitest";
import { hubspot } from "../../../src/webhooks/index.ts";
import { idOf, outcome } from "./outcome.ts";
import { hash } from "./sender.ts";

const secret = "39ad4b5c-a4cf-4a4b-8f2a-000000000000";
const at = 1_763_714_567_890;
const url = "https://shop.example/hubspot?hubId=1";
const provider = (options: Partial<Parameters<typeof hubspot>[0]> = {}) =>
  hubspot({ secret, name: "hubspot", now: () => at, ...options });

/** A delivery with the signature of a text. */
const arrival = (signed: string, body: string, to = url, time = String(at)) => ({
  headers: {
    "x-hubspot-signature-v3": createHmac("sha256", secret).update(signed).digest("base64"),
    "x-hubspot-request-timestamp": time,
  },
  body,
  url: to,
});
const genuine = (body: string, to = url) => arrival(`POST${to}${body}${at}`, body, to);

describe("hubspot", () => {
  it("accepts what @hubspot/api-client 14.0.1 signs", async () => {
    const body =
      '[{"eventId":531833541,"subscriptionId":3923621,"portalId":1160452,"occurredAt":1752613529974,"attemptNumber":0,' +
      '"objectId":123}]';
    const headers = {
      "X-HubSpot-Signature-v3": "Xd+PdVWDTkQaNjaC3nZyXANioT30TG90iKjVbDHUp4w=",
      "X-HubSpot-Request-Timestamp": String(at),
    };
    const given = "https://shop.example/hubspot?hubId=1&email=a@b.c";
    for (const to of [given, given.replace("@", "%40")]) {
      expect(await outcome(provider(), { headers, body, url: to })).toEqual({
        id: hash(`POST${given}${body.replace('"attemptNumber":0', "")}`),
        timestamp: at,
        idSigned: true,
      });
    }
    const strict = { method: "PUT", headers, body, url: given };
    expect(await outcome(provider(), strict)).toBe("bad-signature");
  });

  it("decodes the characters of HubSpot's list in the URL, and no others", async () => {
    const encoded =
      "https://shop.example/x?a=%3A%2F%3F%40%21%24%27%28%29%2A%2C%3B&b=%26%3D%2B%25%23%22%C5%BC%2f";
    const decoded = "https://shop.example/x?a=:/?@!$'()*,;&b=%26%3D%2B%25%23%22%C5%BC/";
    const delivery = arrival(`POST${decoded}[]${at}`, "[]", "http://10.0.0.1/");
    expect(await outcome(provider({ url: encoded }), delivery)).toMatchObject({ timestamp: at });
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
    for (const time of [String(at).slice(1), `1${at}`, `${at} 1`, "1763714567", "-763714567890", "1e12"]) {
      const moved = { ...headers, "x-hubspot-request-timestamp": time };
      expect(await outcome(provider(), { headers: moved, body, url }), time).toBe("malformed-header");
    }
  });

  it("ignores the older signatures, which cover no time", async () => {
    const body = "[]";
    const { "x-hubspot-signature-v3": _, ...rest } = genuine(body).headers;
    const v1 = { ...rest, "x-hubspot-signature": hash(secret + body), "x-hubspot-signature-version": "v1" };
    expect(await outcome(provider(), { headers: v1, body, url })).toBe("missing-header");
  });
});
