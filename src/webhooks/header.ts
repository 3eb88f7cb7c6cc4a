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
