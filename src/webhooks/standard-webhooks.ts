import { checkNames } from "../check.ts";
import { decodeBase64 } from "./decode.ts";
import { malformed, requireHeader, requireId } from "./header.ts";
import { requireForm, requireForms } from "./option.ts";
import { requireBytes, type WebhookProvider } from "./provider.ts";
import { secretTags } from "./secret-tag.ts";
import { badSignature, maxSignatures, signatureCheck, signaturesOf } from "./signature.ts";
import { parseSeconds, type ToleranceOptions, toleranceCheck } from "./tolerance.ts";

/**
 * Options of {@link standardWebhooks}. At least one of `secret` and `publicKey` is required; `tolerance` is 300 000
 * (5 minutes) by default.
 */
export interface StandardWebhooksOptions extends ToleranceOptions {
  /**
   * Secrets of the `v1` scheme (HMAC-SHA256): base64 of 24 … 64 bytes, with or without `whsec_` before it. Several
   * while one is being rotated: each of them is accepted.
   */
  readonly secret?: string | readonly string[] | undefined;
  /** Public keys of the `v1a` scheme (Ed25519): base64 of 32 bytes, with or without `whpk_` before it. */
  readonly publicKey?: string | readonly string[] | undefined;
  /**
   * What precedes `-id`, `-timestamp` and `-signature` in the names of the headers. The first prefix with all three
   * headers is used. Default `["webhook", "svix"]`.
   */
  readonly headerPrefix?: string | readonly string[] | undefined;
  /**
   * The provider's name in the scope of keys. Default `"standard-webhooks"` and a tag of the secrets, which keeps
   * senders with different secrets apart. With a name of your own the secrets are left out: give each sender its own
   * name.
   */
  readonly name?: string | undefined;
}

const optionNames: Readonly<Record<keyof StandardWebhooksOptions, 1>> = {
  secret: 1,
  publicKey: 1,
  headerPrefix: 1,
  tolerance: 1,
  now: 1,
  name: 1,
};

// The start of a header's name, without the dash that follows.
const prefixForm = /^[A-Za-z0-9-]*[A-Za-z0-9]$/;

/**
 * Standard Webhooks (https://www.standardwebhooks.com), which Svix, Clerk, Resend and others send: headers
 * `webhook-id`, `webhook-timestamp` and `webhook-signature` (or `svix-…`). The signature covers
 * `id.timestamp.body`. Schemes are `v1` (HMAC-SHA256) and `v1a` (Ed25519, if the platform's Web Crypto has it); other
 * schemes are skipped. One signature that holds is enough.
 *
 * Stricter than the reference library where two readers could disagree: the timestamp must be plain decimal, base64
 * canonical, and no part of the id between dots may be a number. Otherwise a captured delivery could be split at other
 * places into an id, a time and a body that were never sent.
 *
 * @throws {TypeError} at once: there is neither a secret nor a public key, one does not have its form, or an option is
 * unknown
 * @throws {RangeError} at once: `tolerance` is out of range
 *
 * @example
 * const provider = standardWebhooks({ secret: env.RESEND_WEBHOOK_SECRET, name: "resend" });
 * const { id, timestamp } = await provider.verify(request, body);
 */
export function standardWebhooks(options: StandardWebhooksOptions): WebhookProvider {
  checkNames("standardWebhooks", options, optionNames);
  const name = requireForm("name", options.name ?? "standard-webhooks");
  const prefixes = requireForms("headerPrefix", options.headerPrefix ?? ["webhook", "svix"], prefixForm);
  const checkTolerance = toleranceCheck(name, options, 300_000);
  const { secret, publicKey } = options;
  if (secret === undefined && publicKey === undefined) {
    throw new TypeError("secret or publicKey is needed (is the variable set?)");
  }
  const secrets = secret === undefined ? [] : decodeKeys("secret", secret, secretForm);
  const publicKeys = publicKey === undefined ? [] : decodeKeys("publicKey", publicKey, publicKeyForm);
  const checkV1 = secrets.length > 0 && signatureCheck("HMAC-SHA256", secrets);
  const checkV1a = publicKeys.length > 0 && signatureCheck("Ed25519", publicKeys);
  // A sender may sign with both schemes: its secrets alone identify it.
  const tags = secretTags(options.name === undefined, checkV1 ? secrets : publicKeys);

  return {
    name,
    async verify(request, body) {
      requireBytes(body);
      const { id, seconds, timestamp, v1, v1a } = readHeaders(name, request, prefixes);
      checkTolerance(timestamp);
      const before = `${id}.${seconds}.`;
      const signed =
        (checkV1 && (await checkV1(v1, body, before))) || (checkV1a && (await checkV1a(v1a, body, before)));
      if (!signed) throw badSignature(name);
      return { id, timestamp, idSigned: true, ...(await tags()) };
    },
  };
}

function readHeaders(name: string, request: Request, prefixes: readonly string[]) {
  const prefix = prefixes.find((candidate) => isComplete(request, candidate)) ?? prefixes[0];
  const id = requireId(name, request, `${prefix}-id`);
  const seconds = requireHeader(name, request, `${prefix}-timestamp`);
  const entries = requireHeader(name, request, `${prefix}-signature`).split(" ");

  if (/\.\d+(?:\.|$)/.test(id)) throw malformed(name, `${prefix}-id`, "has a part that reads as a timestamp");
  const timestamp = parseSeconds(name, `${prefix}-timestamp`, seconds);
  const v1 = signaturesOf(entries, { prefix: "v1,", decode: decodeBase64, length: 32 });
  const v1a = signaturesOf(entries, { prefix: "v1a,", decode: decodeBase64, length: 64 });
  if (entries.length > maxSignatures || v1.length + v1a.length === 0) {
    throw malformed(name, `${prefix}-signature`, `is not 1 to ${maxSignatures} signatures v1 or v1a`);
  }
  return { id, seconds, timestamp, v1, v1a };
}

function isComplete(request: Request, prefix: string): boolean {
  return ["id", "timestamp", "signature"].every((part) => request.headers.get(`${prefix}-${part}`));
}

/** The form of a key as senders show it; lengths in bytes. */
interface KeyForm {
  readonly prefix: string;
  readonly minLength: number;
  readonly maxLength: number;
}

const secretForm: KeyForm = { prefix: "whsec_", minLength: 24, maxLength: 64 };
const publicKeyForm: KeyForm = { prefix: "whpk_", minLength: 32, maxLength: 32 };

/** Decodes keys. Error messages say what is wrong without repeating any part of a key. */
function decodeKeys(
  option: string,
  texts: string | readonly string[],
  { prefix, minLength, maxLength }: KeyForm,
): readonly Uint8Array[] {
  return requireForms(option, texts).map((text) => {
    const encoded = text.startsWith(prefix) ? text.slice(prefix.length) : text;
    // Some senders show their secrets without the padding.
    const bytes = decodeBase64(encoded.padEnd(Math.ceil(encoded.length / 4) * 4, "="));
    if (bytes === undefined || bytes.length < minLength || bytes.length > maxLength) {
      throw new TypeError(`${option} must be base64 of ${minLength} to ${maxLength} bytes after ${prefix}`);
    }
    return bytes;
  });
}
