import { systemRuntime } from "../runtime.ts";
import {
  providerName,
  requireBytes,
  requireHeader,
  requireId,
  secretList,
  type WebhookProvider,
  WebhookVerificationError,
} from "./provider.ts";
import { decodeBase64, type SignatureCheck, signatureCheck } from "./signature.ts";

/** Options of {@link standardWebhooks}; at least one of `secret` and `publicKey` is needed. */
export interface StandardWebhooksOptions {
  /**
   * Secrets of the `v1` scheme (HMAC-SHA256): base64 of 24 … 64 bytes, with or without `whsec_` before it.
   * Several while one is being rotated: each of them is accepted.
   */
  readonly secret?: string | readonly string[] | undefined;
  /** Public keys of the `v1a` scheme (Ed25519): base64 of 32 bytes, with or without `whpk_` before it. */
  readonly publicKey?: string | readonly string[] | undefined;
  /**
   * How far the signed time may be from now, in ms, in the past and in the future. An integer, at least
   * 1 000 because the signed time has whole seconds. Default 300 000 (5 minutes).
   */
  readonly tolerance?: number | undefined;
  /**
   * What stands before `-id`, `-timestamp` and `-signature` in the names of the headers. The first prefix
   * with all three headers counts. Default `["webhook", "svix"]`.
   */
  readonly headerPrefix?: string | readonly string[] | undefined;
  /** Default `"standard-webhooks"`. Give senders with secrets of their own names of their own. */
  readonly name?: string | undefined;
  /** The wall clock, in ms since 1970. Default: the platform's. */
  readonly now?: (() => number) | undefined;
}

// Every signature costs one pass over the body for each key, and only two or three are ever sent: a bound
// keeps a header full of them from buying as many passes.
const mostSignatures = 16;

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
  const name = providerName(options.name, "standard-webhooks");
  const prefixes = headerPrefixes(options.headerPrefix ?? ["webhook", "svix"]);
  const tolerance = options.tolerance ?? 300_000;
  if (!Number.isSafeInteger(tolerance) || tolerance < 1_000) {
    throw new RangeError(`tolerance must be an integer of at least 1000 ms, not ${String(tolerance)}`);
  }
  const now = options.now ?? systemRuntime.now;
  if (typeof now !== "function") throw new TypeError(`now must be a function, not ${typeof now}`);
  const checks = signatureChecks(options);

  return {
    name,
    async verify(request, body) {
      requireBytes(body);
      const prefix = prefixes.find((candidate) => complete(request, candidate)) ?? prefixes[0]!;
      const id = requireId(name, request, `${prefix}-id`);
      const seconds = requireHeader(name, request, `${prefix}-timestamp`);
      const signatureHeader = requireHeader(name, request, `${prefix}-signature`);
      const malformed = (header: string, why: string) =>
        new WebhookVerificationError(name, "malformed-header", `${prefix}-${header} ${why}`);

      if (/\.\d+(?:\.|$)/.test(id)) throw malformed("id", "has a part that reads as a timestamp");
      if (!/^\d{1,12}$/.test(seconds)) throw malformed("timestamp", "is not a number of seconds");
      const signatures = parseSignatures(signatureHeader);
      if (signatures === undefined)
        throw malformed("signature", `has more than ${mostSignatures} signatures`);
      if (signatures.length === 0) throw malformed("signature", "has no signature of scheme v1 or v1a");

      // The sender cut its time to whole seconds; ours is cut too, so that no age is overstated.
      const timestamp = Number(seconds) * 1_000;
      const age = Math.floor(now() / 1_000) * 1_000 - timestamp;
      // Written so that a clock that answers NaN refuses.
      if (!(Math.abs(age) <= tolerance)) {
        const why = age > 0 ? "signed too long ago" : "signed too far in the future";
        throw new WebhookVerificationError(name, "outside-tolerance", why);
      }

      const message = signedContent(id, seconds, body);
      for (const { scheme, signed } of checks) {
        const ofScheme = signatures.filter((signature) => signature.scheme === scheme);
        const candidates = ofScheme.map((signature) => signature.bytes);
        if (await signed(candidates, message)) return { id, timestamp, idSigned: true };
      }
      throw new WebhookVerificationError(name, "bad-signature", "no secret or key made these signatures");
    },
  };
}

type Scheme = "v1" | "v1a";

const signatureBytes: Readonly<Record<Scheme, number>> = { v1: 32, v1a: 64 };

interface Signature {
  readonly scheme: Scheme;
  readonly bytes: Uint8Array;
}

/** The well-formed signatures of known schemes, or `undefined` when there are too many of any kind. */
function parseSignatures(header: string): readonly Signature[] | undefined {
  const entries = header.split(" ");
  if (entries.length > mostSignatures) return undefined;
  return entries.flatMap((entry) => {
    const comma = entry.indexOf(",");
    const scheme = entry.slice(0, comma);
    if (scheme !== "v1" && scheme !== "v1a") return [];
    const bytes = decodeBase64(entry.slice(comma + 1));
    return bytes?.length === signatureBytes[scheme] ? [{ scheme, bytes }] : [];
  });
}

function signedContent(id: string, seconds: string, body: Uint8Array): Uint8Array {
  const head = new TextEncoder().encode(`${id}.${seconds}.`);
  const content = new Uint8Array(head.length + body.length);
  content.set(head);
  content.set(body, head.length);
  return content;
}

function complete(request: Request, prefix: string): boolean {
  return ["id", "timestamp", "signature"].every((part) => request.headers.get(`${prefix}-${part}`));
}

function headerPrefixes(option: string | readonly string[]): readonly string[] {
  const prefixes = typeof option === "string" ? [option] : option;
  if (!Array.isArray(prefixes) || prefixes.length === 0) {
    throw new TypeError("headerPrefix must be a string or a list of strings that is not empty");
  }
  for (const prefix of prefixes) {
    if (typeof prefix !== "string" || !/^[A-Za-z0-9-]*[A-Za-z0-9]$/.test(prefix)) {
      throw new TypeError(`headerPrefix must be the start of a header's name, not ${JSON.stringify(prefix)}`);
    }
  }
  return prefixes;
}

function signatureChecks(
  options: StandardWebhooksOptions,
): readonly { readonly scheme: Scheme; readonly signed: SignatureCheck }[] {
  const { secret, publicKey } = options;
  if (secret === undefined && publicKey === undefined) {
    throw new TypeError("secret or publicKey is needed (is the variable set?)");
  }
  const checks: { scheme: Scheme; signed: SignatureCheck }[] = [];
  if (secret !== undefined) {
    const keys = secretList("secret", secret).map((one) => decodeKey("secret", one, "whsec_", 24, 64));
    checks.push({ scheme: "v1", signed: signatureCheck({ name: "HMAC", hash: "SHA-256" }, keys) });
  }
  if (publicKey !== undefined) {
    const keys = secretList("publicKey", publicKey).map((one) =>
      decodeKey("publicKey", one, "whpk_", 32, 32),
    );
    checks.push({ scheme: "v1a", signed: signatureCheck({ name: "Ed25519" }, keys) });
  }
  return checks;
}

/** The key's bytes; its messages tell what is wrong without repeating any of it. */
function decodeKey(option: string, text: string, prefix: string, least: number, most: number): Uint8Array {
  const encoded = text.startsWith(prefix) ? text.slice(prefix.length) : text;
  // Some senders show their secrets without the padding.
  const bytes = decodeBase64(encoded.padEnd(Math.ceil(encoded.length / 4) * 4, "="));
  if (bytes === undefined) throw new TypeError(`${option} must be base64 after ${prefix}`);
  if (bytes.length < least || bytes.length > most) {
    const range = least === most ? `${least}` : `${least} to ${most}`;
    throw new TypeError(`${option} must have ${range} bytes, this one has ${bytes.length}`);
  }
  return bytes;
}
