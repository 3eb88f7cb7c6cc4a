import { decodeBase64Url } from "./decode.ts";
import { checkHmacOptions, type HmacProviderOptions } from "./hmac-options.ts";
import type { WebhookProvider } from "./provider.ts";
import { uncheckedHmacProvider } from "./unchecked-hmac-provider.ts";

/**
 * Makes a provider for a sender that signs with an HMAC and a shared secret, and puts the signature into a header.
 * GitHub, Linear, Meta, Paddle, Shopify, Slack, Stripe and Zoom are built on the same code.
 *
 * `verify` reads the headers, compares the time, checks the signature in constant time with each secret, and looks
 * into the body only after that. For a sender that signs in another way (with a private key, the URL, text behind the
 * body) see `signatureProvider`.
 *
 * @throws {TypeError} at once: an option is unknown, missing or not of its form; `signedText` contradicts `id` or
 * `time`; `tolerance` or `now` is given without `time`
 * @throws {RangeError} at once: `tolerance` is out of range
 *
 * @example
 * // acme-signature: sha256=…, of the time in acme-time, a dot and the body, whose event_id is the event's id
 * const provider = hmacProvider({
 *   name: "acme",
 *   secret: env.ACME_SECRET,
 *   header: "acme-signature",
 *   prefix: "sha256=",
 *   signedText: "{time}.{body}",
 *   time: { header: "acme-time" },
 *   id: { field: "event_id" },
 * });
 * const { id, timestamp } = await provider.verify(request, body);
 */
export function hmacProvider(options: HmacProviderOptions): WebhookProvider {
  checkHmacOptions(options);
  return uncheckedHmacProvider(options, options.encoding === "base64url" ? decodeBase64Url : undefined);
}
