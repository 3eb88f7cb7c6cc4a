import { concatBytes, unshared } from "../bytes.ts";
import { malformed, requireHeader } from "./header.ts";
import { WebhookVerificationError } from "./provider.ts";

/**
 * Whether any of the keys made any of the signatures for this body. `before` (as UTF-8) is what the sender signs in
 * front of the body; default nothing.
 */
export type SignatureCheck = (
  signatures: readonly Uint8Array[],
  body: Uint8Array,
  before?: string,
) => Promise<boolean>;

/**
 * The most entries of a signature header that are checked. Each signature costs one pass over the body per key, and
 * senders send two or three: without a bound, a forged header could demand any number of passes.
 */
export const maxSignatures = 16;

/**
 * Makes a check with one or several keys; several while a secret is being rotated. It uses `crypto.subtle.verify`,
 * which compares in constant time.
 *
 * @param keys secrets for HMAC-SHA256, public keys of 32 bytes for Ed25519; a string stands for its UTF-8
 * @throws {TypeError} there is no key, or an empty one, which everybody knows
 *
 * @example
 * const check = signatureCheck("HMAC-SHA256", [env.ACME_SECRET]);
 * if (!(await check([signature], body, `${seconds}.`))) throw …
 */
export function signatureCheck(
  scheme: "HMAC-SHA256" | "Ed25519",
  keys: readonly (string | Uint8Array)[],
): SignatureCheck {
  if (keys.length === 0 || !keys.every((key) => key?.length > 0)) {
    throw new TypeError("keys must not be empty (is the variable set?)");
  }
  const algorithm = scheme === "Ed25519" ? { name: scheme } : { name: "HMAC", hash: "SHA-256" };
  // The imported keys are kept, not the promise of them. On Workers a promise belongs to the request that made it:
  // it may never settle once that request has ended, so no other request may await it.
  let imported: readonly CryptoKey[] | undefined;

  function importKey(key: string | Uint8Array): Promise<CryptoKey> {
    const bytes = unshared(typeof key === "string" ? new TextEncoder().encode(key) : key);
    return crypto.subtle.importKey("raw", bytes, algorithm, false, ["verify"]);
  }

  return async (signatures, body, before) => {
    if (signatures.length === 0) return false;
    imported ??= await Promise.all(keys.map(importKey));
    const message = before ? concatBytes([new TextEncoder().encode(before), body]) : unshared(body);
    for (const key of imported) {
      for (const signature of signatures) {
        if (await crypto.subtle.verify(algorithm.name, key, unshared(signature), message)) return true;
      }
    }
    return false;
  };
}

/** The form of one signature in a header. */
export interface SignatureForm {
  /** Text before the signature, e.g. `sha256=`; it may be empty. */
  readonly prefix: string;
  /** Decodes the rest, or gives `undefined` for what is not canonical. */
  readonly decode: (text: string) => Uint8Array | undefined;
  /** In bytes. */
  readonly length: number;
}

/** The signatures of a given form among the entries of a header. Other entries are skipped. */
export function signaturesOf(
  entries: readonly string[],
  { prefix, decode, length }: SignatureForm,
): readonly Uint8Array[] {
  return entries.flatMap((entry) => {
    const bytes = entry.startsWith(prefix) ? decode(entry.slice(prefix.length)) : undefined;
    return bytes?.length === length ? [bytes] : [];
  });
}

/**
 * The signature of a header that carries exactly one.
 *
 * @throws {WebhookVerificationError} `missing-header` or `malformed-header`
 */
export function requireSignature(
  provider: string,
  request: Request,
  header: string,
  form: SignatureForm,
): readonly Uint8Array[] {
  const signatures = signaturesOf([requireHeader(provider, request, header)], form);
  if (signatures.length === 0) {
    throw malformed(provider, header, `is not ${form.prefix} and ${form.length} bytes`);
  }
  return signatures;
}

/** The error for a signature that none of the keys made. */
export function badSignature(provider: string): WebhookVerificationError {
  return new WebhookVerificationError(provider, "bad-signature", "none of the keys made this signature");
}
