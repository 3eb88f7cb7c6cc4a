import { checkNames } from "../check.ts";
import {
  malformed,
  requireBytes,
  requireForm,
  requireForms,
  requireHeader,
  requireId,
  type WebhookProvider,
} from "./provider.ts";
import { secretTags } from "./secret-tag.ts";
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
  /**
   * Stands for this sender in the scope of keys. Default `"standard-webhooks"` and a tag of the secrets, so that senders with
   * secrets of their own are apart; a name of your own leaves the secrets out: then give each sender one.
   */
  readonly name?: string | undefined;
}

const names: Readonly<Record<keyof StandardWebhooksOptions, 1>> = {
  secret: 1,
  publicKey: 1,
  headerPrefix: 1,
  tolerance: 1,
  now: 1,
  name: 1,
};

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
  checkNames("standardWebhooks", options, names);
  const name = requireForm("name", options.name ?? "standard-webhooks");
  const prefixes = requireForms("headerPrefix", options.headerPrefix ?? ["webhook", "svix"], prefixForm);
  const checkTolerance = toleranceCheck(name, options, 300_000);
  const { secret, publicKey } = options;
  if (secret === undefined && publicKey === undefined) {
    throw new TypeError("secret or publicKey is needed (is the variable set?)");
  }
  const secrets = secret === undefined ? [] : decodeKeys("secret", secret, "whsec_", 24, 64);
  const publicKeys = publicKey === undefined ? [] : decodeKeys("publicKey", publicKey, "whpk_", 32, 32);
  const bySecret = secrets.length > 0 && signatureCheck("HMAC-SHA256", secrets);
  const byPublicKey = publicKeys.length > 0 && signatureCheck("Ed25519", publicKeys);
  // One sender may sign in both schemes: its secrets alone tell it from others.
  const tags = secretTags(options.name, bySecret ? secrets : publicKeys);

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
        return { id, timestamp, idSigned: true, ...(await tags()) };
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
