import { checkOptions, later, type Schema } from "../../check/check.ts";
import { decodeBase64 } from "../encoding.ts";
import { entriesOf, malformed, maxSignatures, requireHeader, requireId, signaturesOf } from "../header.ts";
import { generated, listOf, requireForm, requireForms } from "../option-checks.ts";
import type { StandardWebhooksOptions } from "../options.ts";
import type { WebhookProvider } from "../provider.ts";
import { signatureCheck } from "../signature-check.ts";
import { parseSeconds } from "../tolerance.ts";
import { type SignedRequest, verifier } from "../verifier.ts";

const schema: Schema<StandardWebhooksOptions> = {
  secret: later,
  publicKey: later,
  headerPrefix: later,
  tolerance: later,
  now: later,
  name: later,
};

const prefixForm = /^[A-Za-z0-9-]*[A-Za-z0-9]$/;

const v1 = { prefix: "v1,", decode: decodeBase64, length: 32 };
const v1a = { prefix: "v1a,", decode: decodeBase64, length: 64 };

/**
 * Standard Webhooks (https://www.standardwebhooks.com), which Svix, Clerk, Resend and others send. The id is the signed
 * `webhook-id` or `svix-id`. Unlike the reference library, it refuses ids with a number between dots, because a
 * captured `id.time.body` could be split at other places.
 *
 * @throws {TypeError} neither a secret nor a public key is given, or an option is wrong
 *
 * @example
 * const provider = standardWebhooks({ secret: env.RESEND_WEBHOOK_SECRET, name: "resend" });
 */
export function standardWebhooks(options: StandardWebhooksOptions): WebhookProvider {
  checkOptions("standardWebhooks", options, schema);
  const { name = "standard-webhooks", tolerance, now, secret, publicKey } = options;
  const prefixes = requireForms("headerPrefix", options.headerPrefix ?? ["webhook", "svix"], prefixForm);
  if (secret === undefined && publicKey === undefined) {
    throw new TypeError("secret or publicKey is needed (is the variable set?)");
  }
  const secrets = decodeKeys("secret", secret);
  const publicKeys = decodeKeys("publicKey", publicKey);
  // Until September 2026, Polar signed with the text of a secret. Its older secrets still do.
  const texts = listOf(secret).filter((text) => typeof text === "string" && text.startsWith("whsec_"));
  const checkV1 =
    secrets.length > 0 && signatureCheck("HMAC-SHA256", [...secrets, ...(texts as readonly string[])]);
  const checkV1a = publicKeys.length > 0 && signatureCheck("Ed25519", publicKeys);
  // A sender may sign with both schemes.
  const identifying = checkV1 ? secrets : publicKeys;

  return verifier({
    name,
    // Svix's schedule: 5 s, 5 min, 30 min, 2 h, 5 h, 10 h and 10 h.
    retries: 99_305_000,
    tolerance,
    now,
    tagged: options.name === undefined ? identifying : [],
    read: (request, body) => readHeaders(name, request, body, prefixes),
    async check(signatures, signed) {
      const of = ({ length }: { length: number }) => signatures.filter((bytes) => bytes.length === length);
      return (checkV1 && (await checkV1(of(v1), signed))) || (checkV1a && (await checkV1a(of(v1a), signed)));
    },
  });
}

function readHeaders(
  name: string,
  request: Request,
  body: Uint8Array,
  prefixes: readonly string[],
): SignedRequest {
  const prefix = prefixes.find((candidate) => isComplete(request, candidate)) ?? prefixes[0];
  const id = requireId(name, request, `${prefix}-id`);
  const seconds = requireHeader(name, request, `${prefix}-timestamp`);
  const entries = entriesOf(requireHeader(name, request, `${prefix}-signature`), " ");

  if (/\.\d+(?:\.|$)/.test(id)) throw malformed(name, `${prefix}-id`, "has a part that reads as a timestamp");
  const timestamp = parseSeconds(name, `${prefix}-timestamp`, seconds);
  const signatures = [v1, v1a].flatMap((form) => signaturesOf(entries, form));
  if (entries.length > maxSignatures || signatures.length === 0) {
    throw malformed(name, `${prefix}-signature`, `is not 1 to ${maxSignatures} signatures v1 or v1a`);
  }
  return { id, timestamp, signatures, signed: [`${id}.${seconds}.`, body] };
}

function isComplete(request: Request, prefix: string): boolean {
  return ["id", "timestamp", "signature"].every((part) => request.headers.get(`${prefix}-${part}`));
}

export function decodeKeys(
  option: "secret" | "publicKey",
  texts: string | readonly string[] | undefined,
): readonly Uint8Array[] {
  if (texts === undefined) return [];
  const [scheme, prefix, min, max] =
    option === "secret" ? ["v1,", "whsec_", 24, 64] : ["v1a,", "whpk_", 32, 32];
  return requireForms(option, texts).map((text) => {
    // Supabase shows the scheme, too.
    const shown = text.startsWith(scheme + prefix) ? text.slice(scheme.length) : text;
    const encoded = requireForm(
      option,
      shown.startsWith(prefix) ? shown.slice(prefix.length) : shown,
      generated,
    );
    // Some senders leave out the padding.
    const bytes = decodeBase64(encoded.padEnd(Math.ceil(encoded.length / 4) * 4, "="));
    if (bytes === undefined || bytes.length < min || bytes.length > max) {
      const plain = option === "secret" ? " (if it is plain text, as Polar's are: give btoa(secret))" : "";
      throw new TypeError(`${option} must be base64 of ${min} to ${max} bytes after ${prefix}${plain}`);
    }
    return bytes;
  });
}
