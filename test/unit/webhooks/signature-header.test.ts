import { describe, expect, it } from "vitest";
import {
  bodyHash,
  bodyId,
  requireId,
  type SignatureProviderOptions,
  signatureProvider,
} from "../../../src/webhooks/custom/index.ts";
import { secretTag } from "../../../src/webhooks/index.ts";
import { bytes, hash, hmac, outcome } from "./outcome.ts";

const seconds = 1_763_714_567;
const at = seconds * 1_000;
const body = '{"event_id":"evt-1"}';

const least: SignatureProviderOptions = {
  name: "acme",
  algorithm: "HMAC-SHA256",
  key: "hush",
  header: "acme-signature",
};
const sign = (text: string, secret: string | Uint8Array = "hush") => hmac(secret, text);

/** Sends a delivery without asking for tags. */
function send(options: Partial<SignatureProviderOptions>, headers: Record<string, string>, text = body) {
  return outcome(signatureProvider({ ...least, tagSecrets: false, ...options }), { headers, body: text });
}

describe("signatureProvider with a header", () => {
  it("needs no more than a name, an algorithm, a key and a header", async () => {
    const headers = { "acme-signature": sign(body) };
    const verified = { id: hash(body), idSigned: true };
    expect(await send({}, headers)).toEqual(verified);
    const secretTags = [await secretTag("hush")];
    expect(await send({ tagSecrets: undefined }, headers)).toEqual({ ...verified, secretTags });
    expect(await send({}, { "acme-signature": sign("other") })).toBe("bad-signature");
    expect(await send({}, {})).toBe("missing-header");
  });

  it.each(["hex", "base64", "base64url"] as const)("reads signatures in %s", async (encoding) => {
    const headers = { "acme-signature": hmac("hush", body, encoding) };
    expect(await send({ encoding }, headers)).toMatchObject({ id: hash(body) });
  });

  it("reads 16 entries of a header at most", async () => {
    const options = {
      now: () => at,
      prefix: "h1=",
      separator: ";",
      time: { entry: "ts=" },
      signedText: "{time}:{body}",
    };
    const entries = [`ts=${seconds}`, ...Array<string>(14).fill(`h1=${"0".repeat(64)}`)];
    const sent = (...more: string[]) => send(options, { "acme-signature": [...entries, ...more].join(";") });
    const good = `h1=${sign(`${seconds}:${body}`)}`;
    expect(await sent(good)).toMatchObject({ timestamp: at });
    expect(await sent("x", good)).toBe("malformed-header");
  });

  it("reads the time from the body, and leaves it out of the id", async () => {
    const options = { now: () => at, time: { field: "sent" }, id: { field: "event_id" }, tolerance: 5_000 };
    const sent = (time: unknown, more = {}) => {
      const text = JSON.stringify({ n: 1, sent: time, ...more });
      return send(options, { "acme-signature": sign(text) }, text);
    };
    const id = hash('{"n":1}');
    for (const time of [at, at - 5_000])
      expect(await sent(time)).toEqual({ id, timestamp: time, idSigned: true });
    expect(await sent(at, { event_id: "evt-1" })).toMatchObject({ id: "evt-1" });
    for (const time of [at - 6_000, undefined, String(at)])
      expect(await sent(time)).toBe("outside-tolerance");
    // As numbers of JavaScript, both are the same.
    const ids = ["9007199254740992", "9007199254740993"].map(async (order) => {
      const text = `{"order":${order},"sent":${at}}`;
      return send(options, { "acme-signature": sign(text) }, text);
    });
    const [one, other] = await Promise.all(ids);
    expect(one).not.toEqual(other);
    // Readers differ in which of two they take.
    const two = `{"sent":${at - 86_400_000},"sent":${at}}`;
    expect(await send(options, { "acme-signature": sign(two) }, two)).toBe("outside-tolerance");
  });

  it("looks for nothing that is not configured", async () => {
    const text = '{"undefined":"evt-1"}';
    const headers = { "acme-signature": `undefined ${sign(text)}`, undefined: "evt-2" };
    expect(await send({ separator: " " }, headers, text)).toEqual({ id: hash(text), idSigned: true });
    const named = { "acme-id": "undefined-1", "acme-signature": sign(text) };
    expect(await send({ id: { header: "acme-id" } }, named, text)).toMatchObject({ id: "undefined-1" });
  });

  it("reads a scope once the signature holds, which may refuse the delivery", async () => {
    const scope = (request: Request) => [requireId("acme", request, "acme-account")];
    const headers = { "acme-account": "a1", "acme-signature": sign(body) };
    expect(await send({ scope }, headers)).toMatchObject({ scope: ["a1"] });
    expect(await send({ scope }, { "acme-signature": sign(body) })).toBe("missing-header");
    expect(await send({ scope }, { "acme-signature": sign("other") })).toBe("bad-signature");
    for (const bad of [undefined, [], [""], Promise.resolve(["a"])]) {
      const wrong = send({ scope: () => bad as string[] }, headers);
      await expect(wrong).rejects.toThrow(TypeError);
      await expect(wrong).rejects.toThrow(/^scope /);
    }
  });
});

it("treats a place that is undefined as absent: no time that is not signed is believed", () => {
  const set = (options: object) => () => signatureProvider({ ...least, ...options });
  const time = { header: "acme-time", field: undefined };
  expect(set({ time })).toThrow(/^signedText must contain \{time\}/);
  for (const place of [time, { header: "acme-time", entry: undefined }]) {
    expect(set({ time: place, signedText: "{time}.{body}" })).not.toThrow();
  }
  const id = { header: undefined, field: "event_id" };
  expect(set({ id, signedText: "{id}.{body}" })).toThrow(/id must name a header/);
});

describe("an id from a field of the body", () => {
  it.each(["x", "evt_1", "~".repeat(255)])("is any valid id: %s", async (id) => {
    expect(await bodyId(bytes(JSON.stringify({ event_id: id, more: 1 })), "event_id")).toBe(id);
  });

  it.each(["{}", '{"event_id":5}', '{"event_id":"é"}', "null", '"event_id"', "event_id=1&text=%2F", ""])(
    "is the body's hash if there is none: %s",
    async (text) => {
      expect(await bodyId(bytes(text), "event_id")).toBe(hash(text));
      expect(await bodyHash(bytes(`x${text}x`).subarray(1, -1))).toBe(hash(text));
    },
  );
});
