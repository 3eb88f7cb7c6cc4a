import { bodyHash } from "../body.ts";
import { decodeBase64 } from "../encoding.ts";
import { requireSignature } from "../header.ts";
import { urlOf } from "../option-checks.ts";
import type { IdOptions, SecretOptions, UrlOptions } from "../options.ts";
import { badSignature, type WebhookProvider } from "../provider.ts";
import { type Given, sender } from "../sender.ts";
import { type Key, type SignatureCheck, signatureCheck } from "../signature-check.ts";
import type { SignedRequest } from "../verifier.ts";

/**
 * Twilio's webhooks: `X-Twilio-Signature` is HMAC-SHA1 with the auth token, or HMAC-SHA256 with a shared key. The id is
 * the hash of the URL and the form's fields, so equal requests count as one (docs/senders.md), or
 * `I-Twilio-Idempotency-Token` with `id: "header"`.
 *
 * @param options `secret`: the auth token, a shared key, or both. `url`: without `bodySHA256`, which is taken from the
 * request
 * @throws {TypeError} an option is wrong
 *
 * @example
 * const provider = twilio({ secret: env.TWILIO_AUTH_TOKEN, url: "https://shop.example/webhooks/twilio" });
 */
export function twilio(options: SecretOptions & UrlOptions & IdOptions): WebhookProvider {
  return sender("twilio", options, {
    check: checkEither,
    url: "optional",
    deliveryId: "i-twilio-idempotency-token",
    idOption: "optional",
    read: readRequest,
  });
}

/** With the URL as it is given, or with its port: one that holds is enough. */
function checkEither(keys: readonly Key[]): SignatureCheck {
  const checks = { 20: signatureCheck("HMAC-SHA1", keys), 32: signatureCheck("HMAC-SHA256", keys) };
  return async ([signature], signed) => {
    const check = checks[signature!.length as keyof typeof checks];
    for (const text of signed as readonly string[]) if (await check([signature!], text)) return true;
    return false;
  };
}

function readRequest(
  { name, url = urlOf, fromBody }: Given,
  request: Request,
  body: Uint8Array,
): SignedRequest {
  const form = { decode: decodeEither };
  const signatures = requireSignature(name, request, "x-twilio-signature", form);
  const hash = /[?&]bodySHA256=([0-9a-f]{64})$/.exec(request.url)?.[1];
  const fields = hash === undefined ? fieldsOf(name, body) : "";
  const address = url(request);
  const given = hash === undefined ? address : withHash(address, hash);
  const signed = withAndWithoutPort(given).map((candidate) => candidate + fields);
  return {
    signatures,
    signed,
    url: address,
    async open() {
      // With a hash at another place, only the URL would be signed, and nothing of the body.
      const isBound = hash === undefined ? !/bodySHA256/i.test(request.url) : hash === (await bodyHash(body));
      if (!isBound) throw badSignature(name, "the URL's bodySHA256 is not that of the body");
      return fromBody ? { id: await bodyHash(new TextEncoder().encode(signed[0])) } : {};
    },
  };
}

/** Twilio sends fewer than a hundred. */
const mostFields = 1_000;

/** Sorted by name and value, without separators. Bounded, because this comes before the check of the signature. */
function fieldsOf(name: string, body: Uint8Array): string {
  const text = new TextDecoder("utf-8", { fatal: false, ignoreBOM: true }).decode(body);
  if (text.split("&", mostFields + 1).length > mostFields) {
    throw badSignature(name, `the form has more than ${mostFields} fields`);
  }
  const fields = new Map<string, Set<string>>();
  // A "?" at the beginning would be left out.
  for (const [field, value] of new URLSearchParams(`&${text}`)) {
    const values = fields.get(field) ?? new Set();
    fields.set(field, values.add(value));
  }
  const names = [...fields.keys()].sort();
  return names.flatMap((field) => [...fields.get(field)!].sort().map((value) => field + value)).join("");
}

function decodeEither(text: string): Uint8Array | undefined {
  const bytes = decodeBase64(text);
  return bytes?.length === 20 || bytes?.length === 32 ? bytes : undefined;
}

/** The first is without a port, and the delivery's id is made of it. */
function withAndWithoutPort(url: string): readonly string[] {
  const parts = /^((https?):\/\/[^/?#]*?)(:\d+)?([/?#].*)?$/is.exec(url);
  if (!parts) return [url];
  const [, host, scheme, port = /s$/i.test(scheme!) ? ":443" : ":80", rest = ""] = parts;
  return [host + rest, host + port + rest];
}

function withHash(url: string, hash: string): string {
  return url.includes("bodySHA256=") ? url : `${url}${url.includes("?") ? "&" : "?"}bodySHA256=${hash}`;
}
