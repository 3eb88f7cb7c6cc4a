import { concatBytes, unshared } from "../bytes.ts";
import { algorithms, type SignatureAlgorithm } from "./algorithm.ts";
import { constantTimeEqual } from "./equal.ts";
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

/** The most entries of a signature header that are read; senders send two or three. */
export const maxSignatures = 16;

/**
 * The most signatures that are checked with public keys. Each costs a pass over the body per key: without a bound, a
 * forged request could demand any number of passes.
 */
const maxVerifications = 4;

/**
 * Makes a check with one or several keys; several while a secret is being rotated. With a secret the body is signed
 * once, and each signature compared with that in constant time. Public keys verify each signature: of more than four
 * none is checked, and the result is false.
 *
 * @param keys secrets for HMAC, where a string stands for its UTF-8; for other algorithms the bytes of public keys (see
 * `decodePublicKey`)
 * @throws {TypeError} at once: there is no key, or an empty one, which everybody knows; from the check: a key is none
 * of this algorithm
 *
 * @example
 * const check = signatureCheck("HMAC-SHA256", [env.ACME_SECRET]);
 * if (!(await check([signature], body, `${seconds}.`))) throw …
 */
export function signatureCheck(
  algorithm: SignatureAlgorithm,
  keys: readonly (string | Uint8Array)[],
): SignatureCheck {
  if (keys.length === 0 || !keys.every((key) => key?.length > 0)) {
    throw new TypeError("keys must not be empty (is the variable set?)");
  }
  const parameters = algorithms[algorithm];
  const isSecret = parameters.name === "HMAC";
  // The imported keys are kept, not the promise of them. On Workers a promise belongs to the request that made it:
  // it may never settle once that request has ended, so no other request may await it.
  let imported: readonly CryptoKey[] | undefined;

  async function importKey(key: string | Uint8Array): Promise<CryptoKey> {
    const bytes = unshared(typeof key === "string" ? new TextEncoder().encode(key) : key);
    const format = isSecret || bytes.length === 32 ? "raw" : "spki";
    try {
      return await crypto.subtle.importKey(format, bytes, parameters, false, [isSecret ? "sign" : "verify"]);
    } catch {
      throw new TypeError(`a key cannot be used for ${algorithm} (is it the right variable, and all of it?)`);
    }
  }

  /** Whether this key made any of the signatures. */
  async function matches(
    key: CryptoKey,
    signatures: readonly Uint8Array[],
    message: Uint8Array<ArrayBuffer>,
  ): Promise<boolean> {
    if (isSecret) {
      // Once, however many there are: a pass over a large body is what costs.
      const expected = new Uint8Array(await crypto.subtle.sign(parameters, key, message));
      return signatures.some((signature) => constantTimeEqual(signature, expected));
    }
    for (const signature of signatures) {
      if (await crypto.subtle.verify(parameters, key, unshared(signature), message)) return true;
    }
    return false;
  }

  return async (signatures, body, before) => {
    if (signatures.length === 0 || (!isSecret && signatures.length > maxVerifications)) return false;
    imported ??= await Promise.all(keys.map(importKey));
    const message = before ? concatBytes([new TextEncoder().encode(before), body]) : unshared(body);
    for (const key of imported) if (await matches(key, signatures, message)) return true;
    return false;
  };
}

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
