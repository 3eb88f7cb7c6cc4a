import { WebhookVerificationError } from "./provider.ts";

/**
 * The value of a header that the sender always sets.
 *
 * @param provider the provider's name, for the error
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
 * An id, or a part of the scope, from a header: 1 … 255 visible ASCII characters. Spaces are refused because a
 * header that was sent twice arrives as `"a, b"`.
 *
 * @param provider the provider's name, for the error
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

/** Whether a value can be an id. Ids become part of keys and of log lines, so they are bounded. */
export function isId(value: unknown): value is string {
  return typeof value === "string" && /^[\x21-\x7e]{1,255}$/.test(value);
}

/** The error for a header that does not have its sender's form. */
export function malformed(provider: string, header: string, why: string): WebhookVerificationError {
  return new WebhookVerificationError(provider, "malformed-header", `${header} ${why}`);
}

/** The most entries of a signature header that are read. Senders send two or three. */
export const maxSignatures = 16;

/** The form of one signature in a header. */
export interface SignatureForm {
  /** Text before the signature, e.g. `sha256=`. Default none. */
  readonly prefix?: string | undefined;
  /** Decodes the rest, or gives `undefined` if it is not canonical. */
  readonly decode: (text: string) => Uint8Array | undefined;
  /** In bytes. Default any but none. */
  readonly length?: number | undefined;
}

/** The entries of a header. No more than one too many: nobody reads them, and anyone can send tens of thousands. */
export function entriesOf(header: string, separator: string): readonly string[] {
  return header.split(separator, maxSignatures + 1);
}

/** The signatures of a given form among the entries of a header. Other entries are skipped. */
export function signaturesOf(
  entries: readonly string[],
  { prefix = "", decode, length }: SignatureForm,
): readonly Uint8Array[] {
  // Before it is decoded: anyone can send a header of a hundred kilobytes. RSA has the longest signatures, of 1 kB.
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
