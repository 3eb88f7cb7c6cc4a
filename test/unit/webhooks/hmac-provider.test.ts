import { createHash, createHmac } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type HmacProviderOptions, hmacProvider, requireId } from "../../../src/webhooks/custom/index.ts";
import { secretTag, WebhookVerificationError } from "../../../src/webhooks/index.ts";
import { seeded } from "../../support/seeded.ts";

const seconds = 1_763_714_567;
const at = seconds * 1_000;
const body = '{"event_id":"evt-1"}';

const least: HmacProviderOptions = { name: "acme", secret: "hush", header: "acme-signature" };
const timed = { now: () => at, time: { header: "acme-time" } } as const;
const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");
const sign = (text: string, secret: string | Uint8Array = "hush") =>
  createHmac("sha256", secret).update(text).digest("hex");

function verify(options: Partial<HmacProviderOptions>, headers: Record<string, string>, text = body) {
  const request = new Request("https://example.com/acme", { method: "POST", headers });
  return hmacProvider({ ...least, ...options }).verify(request, new TextEncoder().encode(text));
}

async function reason(...args: Parameters<typeof verify>): Promise<string> {
  const error = await verify(...args).then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(WebhookVerificationError);
  return (error as WebhookVerificationError).reason;
}

describe("hmacProvider", () => {
  it("needs no more than a name, a secret and a header", async () => {
    const verified = await verify({}, { "acme-signature": sign(body) });
    const secretTags = [await secretTag("hush")];
    expect(verified).toStrictEqual({ id: sha256(body), idSigned: true, secretTags });
    expect(await reason({}, { "acme-signature": sign("other") })).toBe("bad-signature");
    expect(await reason({}, {})).toBe("missing-header");
  });

  it("leaves out the tags of the secrets with tagSecrets: false", async () => {
    const verified = await verify({ tagSecrets: false }, { "acme-signature": sign(body) });
    expect(verified).toEqual({ id: sha256(body), idSigned: true });
  });

  it("accepts secrets as text and as bytes", async () => {
    const key = Uint8Array.of(0, 255, 7);
    for (const secret of [key, ["another", key]]) {
      await expect(verify({ secret }, { "acme-signature": sign(body, key) })).resolves.toBeDefined();
    }
  });

  it("reads prefix and encoding of the signature", async () => {
    const signature = `v9:${Buffer.from(sign(body), "hex").toString("base64")}`;
    const options = { prefix: "v9:", encoding: "base64" } as const;
    await expect(verify(options, { "acme-signature": signature })).resolves.toBeDefined();
    expect(await reason(options, { "acme-signature": signature.slice(3) })).toBe("malformed-header");
    expect(await reason(options, { "acme-signature": `v9:${sign(body)}` })).toBe("malformed-header");
  });

  it.each([
    ["HMAC-SHA1", "sha1"],
    ["HMAC-SHA256", "sha256"],
    ["HMAC-SHA512", "sha512"],
  ] as const)("checks signatures of %s, in each encoding", async (algorithm, node) => {
    for (const encoding of ["hex", "base64", "base64url"] as const) {
      const signed = (by: string) => createHmac(by, "hush").update(body).digest(encoding);
      const of = (signature: string) => [{ algorithm, encoding }, { "acme-signature": signature }] as const;
      await expect(verify(...of(signed(node)))).resolves.toMatchObject({ id: sha256(body) });
      expect(await reason(...of(signed(node === "sha1" ? "sha256" : "sha1")))).toBe("malformed-header");
      const other = createHmac(node, "another").update(body).digest(encoding);
      expect(await reason(...of(other))).toBe("bad-signature");
    }
  });

  it("checks the parts of the signed text in its order", async () => {
    const headers = { "acme-id": "evt-7", "acme-time": String(seconds) };
    const signed = sign(`v1:${seconds}:evt-7:${body}`);
    const options = { ...timed, id: { header: "acme-id" }, signedText: "v1:{time}:{id}:{body}" };
    const verified = await verify(options, { ...headers, "acme-signature": signed });
    expect(verified).toMatchObject({ id: "evt-7", timestamp: at, idSigned: true });
    const other = { ...headers, "acme-id": "evt-8", "acme-signature": signed };
    expect(await reason(options, other)).toBe("bad-signature");
    const later = { ...headers, "acme-time": String(seconds + 1), "acme-signature": signed };
    expect(await reason(options, later)).toBe("bad-signature");
  });

  it("refuses an id that contains the character behind it", async () => {
    const options = { id: { header: "acme-id" }, signedText: "{id}::{body}" };
    for (const id of ["a:b", "a:", ":"]) {
      const headers = { "acme-id": id, "acme-signature": sign(`${id}::${body}`) };
      expect(await reason(options, headers)).toBe("malformed-header");
    }
  });

  it.each(["{id}.{time}.{body}", "{time}:{id}::{body}"])(
    "accepts what was signed by %s, split in no other way",
    async (signedText) => {
      const options = { ...timed, id: { header: "acme-id" }, signedText };
      // The sender never puts the character behind the id into an id.
      const ids = fc.string({ unit: fc.constantFrom(..."a1"), minLength: 1, maxLength: 16 });
      const rests = fc.string({ unit: fc.constantFrom(..."a.:1"), maxLength: 16 });
      const digits = String(seconds);
      let accepted = 0;
      await fc.assert(
        fc.asyncProperty(ids, rests, async (id, rest) => {
          // The body begins as another time and body would.
          const signed = { id, time: digits, body: `${digits}.${digits}:${rest}` };
          const fill = (values: typeof signed) =>
            signedText.replace(/\{(id|time|body)\}/g, (_, name: keyof typeof signed) => values[name]);
          const text = fill(signed);
          const signature = sign(text);
          for (let from = 0; from <= text.length; from += 1) {
            for (let to = from; to <= text.length; to += 1) {
              const other = { id: text.slice(from, to), time: digits, body: "" };
              other.body = text.slice(fill(other).length);
              if (fill(other) !== text) continue;
              const headers = { "acme-id": other.id, "acme-time": digits, "acme-signature": signature };
              const verified = await verify(options, headers, other.body).catch(() => undefined);
              if (verified === undefined) continue;
              accepted += 1;
              expect(verified.id).toBe(id);
            }
          }
        }),
        seeded(60),
      );
      expect(accepted).toBeGreaterThan(0);
    },
  );

  it("reports an id as not signed if the signed text does not contain it", async () => {
    const headers = { "acme-id": "evt-7", "acme-signature": sign(body) };
    const verified = await verify({ id: { header: "acme-id" } }, headers);
    expect(verified).toMatchObject({ id: "evt-7", idSigned: false });
  });

  it("reads the first id header that is present, and the first delivery id", async () => {
    const options = { id: { header: ["acme-id", "acme-old-id"] }, deliveryId: ["acme-log", "acme-old-id"] };
    const headers = { "acme-old-id": "old", "acme-signature": sign(body) };
    expect(await verify(options, headers)).toMatchObject({ id: "old", deliveryId: "old" });
    const both = { ...headers, "acme-id": "new", "acme-log": "log" };
    expect(await verify(options, both)).toMatchObject({ id: "new", deliveryId: "log" });
    expect(await reason(options, { "acme-signature": sign(body) })).toBe("missing-header");
  });

  it("reads an id from the body, or takes its hash", async () => {
    const options = { id: { field: "event_id" } };
    expect((await verify(options, { "acme-signature": sign(body) })).id).toBe("evt-1");
    expect((await verify(options, { "acme-signature": sign("{}") }, "{}")).id).toBe(sha256("{}"));
  });

  it("reads several signatures and the time from the entries of a header", async () => {
    const options = {
      now: () => at,
      prefix: "h1=",
      separator: ";",
      time: { entry: "ts=" },
      signedText: "{time}:{body}",
    };
    const good = `h1=${sign(`${seconds}:${body}`)}`;
    const bad = `h1=${"0".repeat(64)}`;
    const header = (...entries: string[]) => ({ "acme-signature": entries.join(";") });
    const time = `ts=${seconds}`;
    expect(await verify(options, header(time, bad, good, "x"))).toMatchObject({ timestamp: at });
    expect(await reason(options, header(time, bad))).toBe("bad-signature");
    const full = [...Array<string>(14).fill(bad), good];
    expect(await verify(options, header(time, ...full))).toMatchObject({ timestamp: at });
    for (const entries of [[good], [time], [time, time, good], [time, bad, ...full]]) {
      expect(await reason(options, header(...entries))).toBe("malformed-header");
    }
  });

  it("reads the time from the body, and leaves it out of the id", async () => {
    const options = { now: () => at, time: { field: "sent" }, id: { field: "event_id" }, tolerance: 5_000 };
    const sent = (time: unknown, more = {}) => JSON.stringify({ n: 1, sent: time, ...more });
    const of = (text: string) => verify(options, { "acme-signature": sign(text) }, text);
    const first = await of(sent(at - 5_000));
    expect(first).toMatchObject({ id: sha256('{"n":1}'), timestamp: at - 5_000 });
    expect((await of(sent(at))).id).toBe(first.id);
    expect((await of(sent(at, { event_id: "evt-1" }))).id).toBe("evt-1");
    for (const time of [at - 6_000, undefined, String(at)]) {
      const text = sent(time);
      expect(await reason(options, { "acme-signature": sign(text) }, text)).toBe("outside-tolerance");
    }
  });

  it("looks for nothing that is not configured", async () => {
    const text = '{"undefined":"evt-1"}';
    const signature = `undefined ${sign(text)}`;
    const headers = { "acme-signature": signature, undefined: "evt-2" };
    expect((await verify({ separator: " " }, headers, text)).id).toBe(sha256(text));
    const named = { "acme-id": "undefined-1", "acme-signature": sign(text) };
    expect((await verify({ id: { header: "acme-id" } }, named, text)).id).toBe("undefined-1");
  });

  it("reads a scope, which may refuse the delivery", async () => {
    const scope = (request: Request) => [requireId("acme", request, "acme-account")];
    const headers = { "acme-account": "a1", "acme-signature": sign(body) };
    expect((await verify({ scope }, headers)).scope).toEqual(["a1"]);
    expect(await reason({ scope }, { "acme-signature": sign(body) })).toBe("missing-header");
    for (const bad of [undefined, [], [""], Promise.resolve(["a"])]) {
      const wrong = verify({ scope: () => bad as string[] }, headers);
      await expect(wrong).rejects.toThrow(TypeError);
      await expect(wrong).rejects.toThrow(/^scope /);
    }
  });
});

describe("set-up of hmacProvider", () => {
  const make = (options: object) => () => hmacProvider({ ...least, ...options });

  it.each([
    ["no name", { name: "" }, /^name (must|is missing)/],
    ["no secret", { secret: undefined }, /^secret must/],
    ["an empty secret", { secret: ["fine", new Uint8Array()] }, /^secret must/],
    ["no header", { header: "" }, /^header (must|is missing)/],
    ["another encoding", { encoding: "base32" }, /^encoding must/],
    ["another algorithm", { algorithm: "HMAC-MD5" }, /^algorithm must/],
    ["a prefix that is not a text", { prefix: 1 }, /^prefix must/],
    ["an empty separator", { separator: "" }, /^separator (must|is missing)/],
    ["a tag switch that is no boolean", { tagSecrets: "no" }, /^tagSecrets must/],
    ["a scope that is no function", { scope: ["a"] }, /^scope must/],
    ["a delivery id that is no header", { deliveryId: "" }, /^deliveryId (must|is missing)/],
    [
      "a misspelt option",
      { signed: "{body}" },
      /^hmacProvider has no option "signed"; did you mean signedText\?/,
    ],
    ["what only looks like places", { id: "header" }, /^id must be an object/],
    ["no place", { time: {} }, /^time must have one of header, entry, field/],
    [
      "several headers of the time",
      { time: { header: ["a", "b"] }, signedText: "{time}{body}" },
      /^time\.header must/,
    ],
    ["a time that is not signed", timed, /^signedText must contain \{time\}/],
    ["a signed time from nowhere", { signedText: "{time}{body}" }, /time must name a header/],
    ["a signed id from nowhere", { signedText: "{id}.{body}", id: { field: "id" } }, /id must name a header/],
    ["an entry without entries", { signedText: "{time}{body}", time: { entry: "t=" } }, /needs separator/],
    ["a tolerance without a time", { tolerance: 60_000 }, /need time/],
  ])("throws a TypeError for %s", (_, options, message) => {
    expect(make(options)).toThrow(TypeError);
    expect(make(options)).toThrow(message);
  });

  it("treats a place that is undefined as absent: no time that is not signed is believed", () => {
    const time = { header: "acme-time", field: undefined };
    expect(make({ time })).toThrow(/^signedText must contain \{time\}/);
    expect(make({ time, signedText: "{time}.{body}" })).not.toThrow();
    const entry = { header: "acme-time", entry: undefined };
    expect(make({ time: entry, signedText: "{time}.{body}" })).not.toThrow();
    const id = { header: undefined, field: "event_id" };
    expect(make({ id, signedText: "{id}.{body}" })).toThrow(/id must name a header/);
  });

  it.each([
    "",
    "body",
    "{id}.{time}",
    "{body}.",
    "{body}{body}",
    "{timestamp}.{body}",
    "{{body}",
    null,
    5,
    [["{body}"]],
  ])("refuses the signed text %o", (signedText) => {
    expect(make({ signedText })).toThrow(/^signedText must end with \{body\}/);
  });

  it.each(["{id}{body}", "{id}{time}.{body}"])("refuses an id without an end: %o", (signedText) => {
    expect(make({ signedText, id: { header: "a" } })).toThrow(/ends the id$/);
  });

  it("does not repeat a secret", () => {
    expect(make({ secret: ["s3cret-value", ""] })).not.toThrow(/s3cret-value/);
  });
});
