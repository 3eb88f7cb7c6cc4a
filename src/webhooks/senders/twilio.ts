import { bodyHash } from "../body.ts";
import { decodeBase64 } from "../encoding.ts";
import { requireSignature } from "../header.ts";
import { urlOf } from "../option-checks.ts";
import type { IdOptions, SecretOptions, UrlOptions } from "../options.ts";
import { badSignature, type WebhookProvider } from "../provider.ts";
import { type Given, sender } from "../sender.ts";
import type { SignedRequest } from "../verifier.ts";

/**
 * Twilio's webhooks: `X-Twilio-Signature` is the base64 HMAC-SHA1 of the URL and the form's fields, sorted by name. For
 * other bodies it is that of the URL alone, whose parameter `bodySHA256` is the body's hash. Twilio signs neither an id
 * nor a time. The id is the hash of what is signed, not of the body: the same fields in another order or spelling have
 * the same signature. Requests that are equal in all of it count as one: see docs/webhooks.md for voice menus. With
 * `id: "header"` the id is `I-Twilio-Idempotency-Token`.
 *
 * @param options `secret`: the account's auth token; `url`: the parameter `bodySHA256`, which Twilio adds itself, is
 * taken from the request
 * @throws {TypeError} at once: an option is unknown or not of its form
 *
 * @example
 * const provider = twilio({ secret: env.TWILIO_AUTH_TOKEN, url: "https://shop.example/webhooks/twilio" });
 * const { id } = await provider.verify(request, body);
 */
export function twilio(options: SecretOptions & UrlOptions & IdOptions): WebhookProvider {
  return sender("twilio", options, {
    algorithm: "HMAC-SHA1",
    url: "optional",
    deliveryId: "i-twilio-idempotency-token",
    idOption: "optional",
    read: readRequest,
  });
}

function readRequest(
  { name, url = urlOf, fromBody }: Given,
  request: Request,
  body: Uint8Array,
): SignedRequest {
  const form = { decode: decodeBase64, length: 20 };
  const signatures = requireSignature(name, request, "x-twilio-signature", form);
  const hash = /[?&]bodySHA256=([0-9a-f]{64})$/.exec(request.url)?.[1];
  const signed = hash === undefined ? url(request) + fieldsOf(body) : withHash(url(request), hash);
  return {
    signatures,
    signed,
    url: url(request),
    async open() {
      // With a hash at another place, the URL alone would be signed, and nothing of the body.
      const isBound = hash === undefined ? !/bodySHA256/i.test(request.url) : hash === (await bodyHash(body));
      if (!isBound) throw badSignature(name, "the URL's bodySHA256 is not that of the body");
      return fromBody ? { id: await bodyHash(new TextEncoder().encode(signed)) } : {};
    },
  };
}

/**
 * The fields of a form as they are signed: sorted by name, each with its different values, sorted, without separators.
 * Read in one pass: anyone can send megabytes of fields, and the signature is checked only after this.
 */
function fieldsOf(body: Uint8Array): string {
  const text = new TextDecoder("utf-8", { fatal: false, ignoreBOM: true }).decode(body);
  const fields = new Map<string, Set<string>>();
  // Behind an "&": alone, a "?" at the beginning would be left out.
  for (const [name, value] of new URLSearchParams(`&${text}`)) {
    const values = fields.get(name) ?? new Set();
    fields.set(name, values.add(value));
  }
  const names = [...fields.keys()].sort();
  return names.flatMap((name) => [...fields.get(name)!].sort().map((value) => name + value)).join("");
}

function withHash(url: string, hash: string): string {
  return url.includes("bodySHA256=") ? url : `${url}${url.includes("?") ? "&" : "?"}bodySHA256=${hash}`;
}
