import { malformed, requireHeader } from "./header.ts";
import { WebhookVerificationError } from "./provider.ts";

/** The most entries of a signature header that are read; senders send two or three. */
export const maxSignatures = 16;

/** The form of one signature in a header. */
export interface SignatureForm {
  /** Text before the signature, e.g. `sha256=`. Default none. */
  readonly prefix?: string | undefined;
  /** Decodes the rest, or gives `undefined` for what is not canonical. */
  readonly decode: (text: string) => Uint8Array | undefined;
  /** In bytes. Default any but none. */
  readonly length?: number | undefined;
}

/** The signatures of a given form among the entries of a header. Other entries are skipped. */
export function signaturesOf(
  entries: readonly string[],
  { prefix = "", decode, length }: SignatureForm,
): readonly Uint8Array[] {
  return entries.flatMap((entry) => {
    const bytes = entry.startsWith(prefix) ? decode(entry.slice(prefix.length)) : undefined;
    return bytes && bytes.length === (length ?? (bytes.length || 1)) ? [bytes] : [];
  });
}

/**
 * The signature of a header that carries exactly one, in a list.
 *
 * @param provider the provider's name, for the error
 * @throws {WebhookVerificationError} `missing-header` or `malformed-header`
 *
 * @example
 * const signatures = requireSignature("acme", request, "acme-signature", { prefix: "v1=", decode: decodeHex });
 */
export function requireSignature(
  provider: string,
  request: Request,
  header: string,
  form: SignatureForm,
): readonly Uint8Array[] {
  const signatures = signaturesOf([requireHeader(provider, request, header)], form);
  if (signatures.length === 0)
    throw malformed(provider, header, "is not one signature of this sender's form");
  return signatures;
}

/** The error for a signature that none of the keys made. The default names the usual causes. */
export function badSignature(
  provider: string,
  why = "none of the keys made this signature: either the secret or key is not that of this endpoint and mode (test or \
live), or what was signed was changed before it was verified, for example a body that was parsed and serialised again",
): WebhookVerificationError {
  return new WebhookVerificationError(provider, "bad-signature", why);
}
