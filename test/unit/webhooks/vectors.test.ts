import { describe, expect, it, vi } from "vitest";
import { isRedlockError } from "../../../src/errors/errors.ts";
import { decodePublicKey } from "../../../src/webhooks/custom/index.ts";
import { secretTag, WebhookVerificationError } from "../../../src/webhooks/index.ts";
import { outcome } from "./outcome.ts";
import { keyOf, make, providerOf, type Vector, vectors } from "./vectors.ts";

// What all senders have in common, shown by the rows of vectors.json. What is odd of one is tested in a file of its own.

/** The signature at the end of its header. */
const signature = /(?:[0-9a-f]{40,}|[\w+/-]{27,}={0,2})$/;

/** Spellings of a signature's bytes that are not the sender's. */
function otherSpellings(text: string): string[] {
  const isHex = /^[0-9a-f]+$/.test(text);
  if (isHex) return [Buffer.from(text, "hex").toString("base64"), text.slice(1), `${text}00`];
  // A JWT's: base64url, not padded.
  if (!/=$/.test(text)) return [`${text}=`, `${text}+`, text.slice(2), ""];
  return [Buffer.from(text, "base64").toString("hex"), text.replace(/=+$/, ""), text.slice(4), `AAAA${text}`];
}

/** Another letter or digit in its place. */
function changed(text: string, place: number): string {
  const other = text[place] === "1" ? "2" : "1";
  return text.slice(0, place) + other + text.slice(place + 1);
}

describe.each(vectors.map((vector) => [`${vector.sender}, ${vector.from}`, vector] as const))(
  "%s",
  (_, vector) => {
    const { sender, headers, body, now, other, verified, lifetime, optional, unsigned } = vector;
    const [keyName, key] = keyOf(vector);
    const provider = providerOf(vector, { name: "n" });
    const signatureHeader = Object.keys(headers).find((header) => /signature|hmac/i.test(header))!;
    const accepts = (by = provider, more: Partial<Vector> = {}) => outcome(by, { ...vector, ...more });
    const withHeader = (header: string, text: string) =>
      accepts(provider, { headers: { ...headers, [header]: text } });
    const required = Object.keys(headers).filter((header) => !optional.includes(header));

    it("is accepted, and its id is found", async () => {
      expect(await accepts()).toStrictEqual(verified);
      // The same from anywhere in a larger buffer.
      const bytes = new TextEncoder().encode(`xx${body}x`).subarray(2, -1);
      expect(await outcome(provider, { ...vector, body: bytes })).toStrictEqual(verified);
    });

    it("is refused if any part that is signed was changed", async () => {
      for (const text of [`${body} `, body.slice(0, -1), `${body}{}`]) {
        expect(await accepts(provider, { body: text }), text).toBe("bad-signature");
      }
      const place = headers[signatureHeader]!.length - 20;
      expect(await withHeader(signatureHeader, changed(headers[signatureHeader]!, place))).toBe(
        "bad-signature",
      );
      for (const header of required) {
        if (header === signatureHeader || unsigned.includes(header)) continue;
        const text = headers[header]!;
        for (const altered of [changed(text, text.length - 1), changed(text, 0), text.slice(1), `${text}0`]) {
          expect(await withHeader(header, altered), `${header}: ${altered}`).toBeTypeOf("string");
        }
      }
    });

    it("is refused if a header is missing, empty, or was sent twice", async () => {
      for (const header of required) {
        const { [header]: text, ...rest } = headers;
        expect([header, await accepts(provider, { headers: rest })]).toEqual([header, "missing-header"]);
        expect([header, await withHeader(header, "")]).toEqual([header, "missing-header"]);
        // Some headers may hold several signatures.
        if (/^(webhook|svix|stripe|paddle)-signature$/i.test(header)) continue;
        expect([header, await withHeader(header, `${text}, ${text}`)]).toEqual([header, "malformed-header"]);
      }
    });

    it("is refused if its signature is malformed, or spelled in another way", async () => {
      const genuine = headers[signatureHeader]!;
      const spelled = otherSpellings(signature.exec(genuine)![0]).map((text) =>
        genuine.replace(signature, text),
      );
      for (const text of [...vector.malformed, ...spelled]) {
        expect([text, await withHeader(signatureHeader, text)]).toEqual([text, "malformed-header"]);
      }
    });

    it("is accepted with a signature of upper-case hex", async () => {
      const genuine = headers[signatureHeader]!;
      const digits = signature.exec(genuine)![0];
      if (!/^[0-9a-f]+$/.test(digits)) return;
      expect(await withHeader(signatureHeader, genuine.replace(digits, digits.toUpperCase()))).toStrictEqual(
        verified,
      );
    });

    it("is accepted within its tolerance, to the second, in both directions", async () => {
      const far = 10 * 365 * 86_400_000;
      const at = (time: number, options: object = {}) =>
        accepts(providerOf(vector, { name: "n", ...options }, () => time));
      const bounds = async (tolerance: number, options: object) => {
        for (const time of [now + lifetime + tolerance, now - tolerance]) {
          expect(await at(time, options)).toStrictEqual(verified);
        }
        for (const time of [now + lifetime + tolerance + 1_000, now + far, Number.NaN]) {
          expect(await at(time, options), String(time - now)).toBe("outside-tolerance");
        }
        for (const time of [now - tolerance - 1_000, now - far]) {
          const expected = vector.anyFuture ? verified : "outside-tolerance";
          expect(await at(time, options), String(time - now)).toStrictEqual(expected);
        }
      };
      if (vector.tolerance !== undefined) await bounds(vector.tolerance, {});
      else for (const time of [now + far, now - far]) expect(await at(time)).toStrictEqual(verified);

      if (verified.timestamp !== undefined) await bounds(20_000, { tolerance: 20_000 });
      else expect(() => providerOf(vector, { tolerance: 20_000 })).toThrow(/ has no option "tolerance"; /);
    });

    it("is accepted by each of several secrets, and by no other", async () => {
      for (const several of [[other, key], [key, other], [key]]) {
        expect(await accepts(providerOf(vector, { [keyName]: several, name: "n" }))).toStrictEqual(verified);
      }
      expect(await accepts(providerOf(vector, { [keyName]: other }))).toBe("bad-signature");
    });

    it("has the tags of the secrets, unless the provider has a name of its own", async () => {
      const by = providerOf(vector, { [keyName]: [other, key] });
      expect(by.name).toBe(sender.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`));
      const { secretTags, ...rest } = (await accepts(by)) as typeof verified;
      expect(rest).toStrictEqual(verified);
      expect(secretTags).toEqual(
        await Promise.all([other, key].map((text) => secretTag(bytesOf(sender, text)))),
      );
    });

    it("has neither secrets nor anything that was sent in its errors", async () => {
      const by = providerOf(vector, { [keyName]: other });
      const sent = Object.values(headers).filter((value) => value.length > 20);
      for (const broken of [headers, { ...headers, [signatureHeader]: "leaked" }]) {
        const request = new Request(vector.url, { method: "POST", headers: broken });
        const error: unknown = await by
          .verify(request, new TextEncoder().encode(body))
          .catch((thrown) => thrown);
        expect(error).toBeInstanceOf(WebhookVerificationError);
        expect(isRedlockError(error)).toBe(true);
        expect(error).toMatchObject({ code: "WEBHOOK_INVALID", provider: by.name });
        const { message, stack } = error as Error;
        const said = JSON.stringify({ ...(error as Error), message, stack });
        for (const hidden of [key, other, body.slice(0, 40), "leaked", ...sent])
          expect(said).not.toContain(hidden);
      }
    });

    it("needs a secret of its form at set-up, and repeats none", () => {
      for (const bad of ["", ...vector.badSecrets]) {
        for (const given of [bad, [key, bad]]) {
          const set = () => make(sender, { ...vector.options, [keyName]: given });
          expect(set, JSON.stringify(bad)).toThrow(TypeError);
          expect(set).toThrow(/^(secret|publicKey) /);
          if (bad.length > 6) expect(set).not.toThrow(bad.trim());
          expect(set).not.toThrow(key);
        }
      }
      for (const bad of [undefined, null, [], [key, undefined], [[key]], 42, {}]) {
        const set = () => make(sender, { ...vector.options, [keyName]: bad });
        expect(set, JSON.stringify(bad)).toThrow(TypeError);
        expect(set).toThrow(/^(secret|publicKey) /);
      }
    });

    it("refuses an empty name, a misspelt option, and a tolerance that is none, at set-up", () => {
      expect(() => providerOf(vector, { name: "" })).toThrow(/^name /);
      expect(() => providerOf(vector, { nmae: "n" })).toThrow(
        new TypeError(`${sender} has no option "nmae"; did you mean name?`),
      );
      expect(() => make(sender, undefined)).toThrow(new TypeError(`${sender} needs an object of options`));
      if (verified.timestamp === undefined) return;
      expect(() => providerOf(vector, { tolerance: 999 })).toThrow(RangeError);
      expect(() => providerOf(vector, { now: 5 })).toThrow(/^now must be a function/);
    });

    it("needs the body's bytes", async () => {
      const verify = provider.verify(new Request(vector.url, { headers }), body as unknown as Uint8Array);
      await expect(verify).rejects.toThrow(
        new TypeError("body must be the request's bytes as a Uint8Array, not string"),
      );
    });

    it("does not read the request's body, and parses no body that is not signed", async () => {
      const request = new Request(vector.url, { method: "POST", headers, body });
      await provider.verify(request, new TextEncoder().encode(body));
      expect(request.bodyUsed).toBe(false);
      using parse = vi.spyOn(JSON, "parse");
      expect(await accepts(provider, { body: '{"id":"forged"}' })).toBe("bad-signature");
      // A JWT is signed by itself, and may have been parsed.
      expect(JSON.stringify(parse.mock.calls)).not.toContain("forged");
    });
  },
);

const withIdOption = vectors.filter(({ idHeader }) => idHeader !== undefined);

it.each(withIdOption.map((vector) => [`${vector.sender}, ${vector.from}`, vector] as const))(
  'the id of %s is the unsigned header only with id: "header"',
  async (_, vector) => {
    const { headers, verified } = vector;
    const idHeader = vector.idHeader!;
    const { [idHeader]: _id, ...rest } = headers;
    const by = (id: unknown) => providerOf(vector, { id, name: "n" });
    const sent = (id: unknown, text?: string) =>
      outcome(by(id), { ...vector, headers: text === undefined ? rest : { ...rest, [idHeader]: text } });
    expect(await sent("header", "one")).toMatchObject({ id: "one", idSigned: false, deliveryId: "one" });
    expect(await sent("header", "~".repeat(255))).toMatchObject({ id: "~".repeat(255) });
    expect(await sent("header")).toBe("missing-header");
    for (const bad of ["a b", "a, b", "é", "x".repeat(256)]) {
      expect(await sent("header", bad)).toBe("malformed-header");
    }
    const { deliveryId: __, ...hashed } = verified;
    for (const id of [undefined, "body"]) {
      expect(await sent(id)).toStrictEqual(hashed);
      expect(await sent(id, "one")).toStrictEqual({ ...hashed, deliveryId: "one" });
      expect(await sent(id, "not an id")).toStrictEqual(hashed);
    }
    for (const bad of ["", "hash", "headers", null, ["body"], 1]) {
      expect(() => by(bad)).toThrow(TypeError);
      expect(() => by(bad)).toThrow(/^id /);
    }
  },
);

/** What a secret or public key stands for. */
function bytesOf(sender: string, text: string): string | Uint8Array {
  if (sender === "discord") return Buffer.from(text, "hex");
  if (sender === "sendgrid") return decodePublicKey(text);
  return sender === "standardWebhooks" ? Buffer.from(text.replace(/^wh\w+_/, ""), "base64") : text;
}

it("every sender has a vector", async () => {
  const table = await import("../../../src/webhooks/senders/table.ts");
  const odd = ["hubspot", "qstash", "shopify", "standardWebhooks", "twilio"];
  expect(new Set(vectors.map(({ sender }) => sender))).toEqual(new Set([...Object.keys(table), ...odd]));
});
