import type { WebhookProvider } from "./provider.ts";
import { checkSignatureOptions, type SignatureProviderOptions } from "./signature-options.ts";
import { uncheckedSignatureProvider } from "./unchecked-signature-provider.ts";

/**
 * Makes a provider for a sender whose signature `hmacProvider` cannot describe: made with a private key, over the URL
 * or parts of a form, or as a JWT. `read` says what was signed; the rest is done here: the time is compared, the
 * signature checked in constant time with each key, and `open` called only after that.
 *
 * @throws {TypeError} at once: an option is unknown, missing or not of its form
 * @throws {RangeError} at once: `tolerance` is out of range
 *
 * @example
 * // acme-signature: the Ed25519 signature of the URL and the body, in hex
 * const provider = signatureProvider({
 *   name: "acme",
 *   algorithm: "Ed25519",
 *   key: decodePublicKey(env.ACME_PUBLIC_KEY),
 *   read: (request, body) => ({
 *     signatures: requireSignature("acme", request, "acme-signature", { decode: decodeHex }),
 *     signed: [request.url, body],
 *   }),
 * });
 */
export function signatureProvider(options: SignatureProviderOptions): WebhookProvider {
  checkSignatureOptions(options);
  return uncheckedSignatureProvider(options);
}
