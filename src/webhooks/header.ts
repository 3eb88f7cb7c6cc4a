import { WebhookVerificationError } from "./provider.ts";

/**
 * The value of a header that the sender always sets.
 *
 * @throws {WebhookVerificationError} `missing-header`: it is absent or empty
 *
 * @example
 * const signature = requireHeader("acme", request, "acme-signature");
 */
export function requireHeader(provider: string, request: Request, header: string): string {
  const value = request.headers.get(header);
  if (!value) throw new WebhookVerificationError(provider, "missing-header", `no header ${header}`);
  return value;
}

/**
 * An id, or a part of the scope, from a header: 1 to 255 visible ASCII characters. Spaces are refused because a header
 * that was sent twice arrives as `"a, b"`.
 *
 * @throws {WebhookVerificationError} `missing-header` or `malformed-header`
 *
 * @example
 * const id = requireId("acme", request, "acme-id");
 */
export function requireId(provider: string, request: Request, header: string): string {
  const id = requireHeader(provider, request, header);
  if (!isId(id)) throw malformed(provider, header, "is not 1 to 255 visible ASCII characters");
  return id;
}

/** Ids become part of keys and log lines. */
export function isId(value: unknown): value is string {
  return typeof value === "string" && /^[\x21-\x7e]{1,255}$/.test(value);
}

export function malformed(provider: string, header: string, why: string): WebhookVerificationError {
  return new WebhookVerificationError(provider, "malformed-header", `${header} ${why}`);
}

/** Senders send two or three. */
export const maxSignatures = 16;

/** How one signature is written in a header. */
export interface SignatureForm {
  /** For example `sha256=`. Default none. */
  readonly prefix?: string | undefined;
  /** Returns `undefined` if the rest is not canonical. */
  readonly decode: (text: string) => Uint8Array | undefined;
  /** In bytes. Default: any but none. */
  readonly length?: number | undefined;
}

/** One more than allowed, because anyone can send tens of thousands. */
export function entriesOf(header: string, separator: string): readonly string[] {
  return header.split(separator, maxSignatures + 1);
}

export function signaturesOf(
  entries: readonly string[],
  { prefix = "", decode, length }: SignatureForm,
): readonly Uint8Array[] {
  // Anyone can send 100 kB. RSA's signatures, the longest, have 1 kB.
  const longest = prefix.length + 4 * (length ?? 1_024);
  return entries.flatMap((entry) => {
    const isOfForm = entry.length <= longest && entry.startsWith(prefix);
    const bytes = isOfForm ? decode(entry.slice(prefix.length)) : undefined;
    return bytes && bytes.length === (length ?? (bytes.length || 1)) ? [bytes] : [];
  });
}

/**
 * The signature of a header that carries exactly one, in a list.
 *
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
