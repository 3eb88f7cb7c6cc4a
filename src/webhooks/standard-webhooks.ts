import {
  malformed,
  requireBytes,
  requireForm,
  requireForms,
  requireHeader,
  requireId,
  type WebhookProvider,
} from "./provider.ts";
import { badSignature, decodeBase64, mostSignatures, signatureCheck, signaturesOf } from "./signature.ts";
import { parseSeconds, type ToleranceOptions, toleranceCheck } from "./tolerance.ts";

/**
 * Options of {@link standardWebhooks}; at least one of `secret` and `publicKey` is needed, and `tolerance` is
 * 300 000 (5 minutes) by default.
 */
export interface StandardWebhooksOptions extends ToleranceOptions {
  /**
   * Secrets of the `v1` scheme (HMAC-SHA256): base64 of 24 … 64 bytes, with or without `whsec_` before it.
   * Several while one is being rotated: each of them is accepted.
   */
  readonly secret?: string | readonly string[] | undefined;
  /** Public keys of the `v1a` scheme (Ed25519): base64 of 32 bytes, with or without `whpk_` before it. */
  readonly publicKey?: string | readonly string[] | undefined;
  /**
   * What stands before `-id`, `-timestamp` and `-signature` in the names of the headers. The first prefix
   * with all three headers counts. Default `["webhook", "svix"]`.
   */
  readonly headerPrefix?: string | readonly string[] | undefined;
  /** Default `"standard-webhooks"`. Give senders with secrets of their own names of their own. */
  readonly name?: string | undefined;
}

/**
 * Standard Webhooks (https://www.standardwebhooks.com), which Svix, Clerk, Resend and others send: headers
 * `webhook-id`, `webhook-timestamp` and `webhook-signature` (or `svix-…`), the signature covering all of
 * `id.timestamp.body`. Schemes `v1` (HMAC-SHA256) and `v1a` (Ed25519, where the platform's Web Crypto has
 * it); signatures of other schemes are passed over, one that fits is enough.
 *
 * Stricter than the reference library in what two parties could read in two ways: the timestamp must be
 * plain decimal, base64 canonical, and no part of the id between dots may be a number, because a captured
 * delivery could then be cut in other places into an id, a time and a body that were never sent.
 *
 * @throws {TypeError} at once, when neither a secret nor a public key is given or one is not of its form.
 * @throws {RangeError} at once, when `tolerance` is out of range.
 *
 * @example
 * const provider = standardWebhooks({ secret: env.RESEND_WEBHOOK_SECRET, name: "resend" });
 * const { id, timestamp } = await provider.verify(request, body);
 */
export function standardWebhooks(options: StandardWebhooksOptions): WebhookProvider {
  const name = requireForm("name", options.name ?? "standard-webhooks");
  const prefixes = requireForms("headerPrefix", options.headerPrefix ?? ["webhook", "svix"], prefixForm);
  const checkTolerance = toleranceCheck(name, options, 300_000);
  const { secret, publicKey } = options;
  if (secret === undefined && publicKey === undefined) {
    throw new TypeError("secret or publicKey is needed (is the variable set?)");
  }
  const bySecret =
    secret !== undefined && signatureCheck("HMAC-SHA256", decodeKeys("secret", secret, "whsec_", 24, 64));
  const byPublicKey =
    publicKey !== undefined && signatureCheck("Ed25519", decodeKeys("publicKey", publicKey, "whpk_", 32, 32));

  return {
    name,
    async verify(request, body) {
      requireBytes(body);
      const prefix = prefixes.find((candidate) => complete(request, candidate)) ?? prefixes[0]!;
      const id = requireId(name, request, `${prefix}-id`);
      const seconds = requireHeader(name, request, `${prefix}-timestamp`);
      const entries = requireHeader(name, request, `${prefix}-signature`).split(" ");

      if (/\.\d+(?:\.|$)/.test(id))
        throw malformed(name, `${prefix}-id`, "has a part that reads as a timestamp");
      const timestamp = parseSeconds(name, `${prefix}-timestamp`, seconds);
      const v1 = signaturesOf(entries, "v1,", decodeBase64, 32);
      const v1a = signaturesOf(entries, "v1a,", decodeBase64, 64);
      if (entries.length > mostSignatures || v1.length + v1a.length === 0) {
        throw malformed(name, `${prefix}-signature`, `is not 1 to ${mostSignatures} signatures v1 or v1a`);
      }
      checkTolerance(timestamp);

      const before = `${id}.${seconds}.`;
      if (
        (bySecret && (await bySecret(v1, body, before))) ||
        (byPublicKey && (await byPublicKey(v1a, body, before)))
      ) {
        return { id, timestamp, idSigned: true };
      }
      throw badSignature(name);
    },
  };
}

// The start of a header's name, without the dash that follows.
const prefixForm = /^[A-Za-z0-9-]*[A-Za-z0-9]$/;

function complete(request: Request, prefix: string): boolean {
  return ["id", "timestamp", "signature"].every((part) => request.headers.get(`${prefix}-${part}`));
}

/** The keys' bytes; its messages tell what is wrong without repeating any of it. */
function decodeKeys(
  option: string,
  texts: string | readonly string[],
  prefix: string,
  least: number,
  most: number,
) {
  return requireForms(option, texts).map((text) => {
    const encoded = text.startsWith(prefix) ? text.slice(prefix.length) : text;
    // Some senders show their secrets without the padding.
    const bytes = decodeBase64(encoded.padEnd(Math.ceil(encoded.length / 4) * 4, "="));
    if (bytes === undefined || bytes.length < least || bytes.length > most) {
      throw new TypeError(`${option} must be base64 of ${least} to ${most} bytes after ${prefix}`);
    }
    return bytes;
  });
}
