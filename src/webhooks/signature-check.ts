import { concatBytes, toHex, unshared } from "../runtime/bytes.ts";

/** The algorithms as Web Crypto names them, and how many bytes a signature has, unless that depends on the key. */
export const algorithms = {
  "HMAC-SHA1": { name: "HMAC", hash: "SHA-1", signatureLength: 20 },
  "HMAC-SHA256": { name: "HMAC", hash: "SHA-256", signatureLength: 32 },
  "HMAC-SHA512": { name: "HMAC", hash: "SHA-512", signatureLength: 64 },
  Ed25519: { name: "Ed25519", signatureLength: 64 },
  "ECDSA-P256-SHA256": { name: "ECDSA", hash: "SHA-256", namedCurve: "P-256", signatureLength: 64 },
  "RSA-SHA256": { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256", signatureLength: undefined },
} as const;

/**
 * How a sender signs. Keys are secrets for HMAC. For the others they are public keys: their SPKI, or the 32 bytes of an Ed25519
 * key. RSA is PKCS #1 v1.5. An ECDSA signature is two numbers of 32 bytes (see `decodeDer`).
 */
export type SignatureAlgorithm = keyof typeof algorithms;

/** A secret or public key. Text stands for its UTF-8. */
export type Key = string | Uint8Array;

/** The signed bytes: one after the other, text as UTF-8. */
export type SignedParts = string | Uint8Array | readonly (string | Uint8Array)[];

/** Whether any of the keys made any of the signatures for this. */
export type SignatureCheck = (signatures: readonly Uint8Array[], signed: SignedParts) => Promise<boolean>;

/**
 * The most signatures that are checked with public keys. Each costs a pass over the body per key: without a bound, a
 * forged request could demand any number of passes.
 */
const maxVerifications = 4;

/**
 * Makes a check with one or several keys. There are several while a secret is being rotated. With a secret the content is
 * signed once, and each signature compared with that in constant time. Public keys verify each signature: of more than four
 * none is checked, and the result is false.
 *
 * @param keys secrets for HMAC, where a string stands for its UTF-8. For other algorithms the bytes of public keys (see
 * `decodePublicKey`)
 * @throws {TypeError} at once: there is no key, or an empty one, which everybody knows. From the check: a key is none
 * of this algorithm
 *
 * @example
 * const check = signatureCheck("HMAC-SHA256", [env.ACME_SECRET]);
 * if (!(await check([signature], [`${seconds}.`, body]))) throw …
 */
export function signatureCheck(algorithm: SignatureAlgorithm, keys: readonly Key[]): SignatureCheck {
  if (keys.length === 0 || !keys.every((key) => key?.length > 0)) {
    throw new TypeError("keys must not be empty (is the variable set?)");
  }
  const isSecret = algorithms[algorithm].name === "HMAC";
  // The imported keys are kept, not the promise of them. On Workers a promise belongs to the request that made it:
  // it may never settle once that request has ended, so no other request may await it.
  let imported: readonly CryptoKey[] | undefined;

  /** Whether this key made any of the signatures. */
  async function matches(
    key: CryptoKey,
    signatures: readonly Uint8Array[],
    message: Uint8Array<ArrayBuffer>,
  ): Promise<boolean> {
    if (isSecret) {
      // Once, however many there are: a pass over a large body is what costs.
      const expected = new Uint8Array(await crypto.subtle.sign("HMAC", key, message));
      return signatures.some((signature) => constantTimeEqual(signature, expected));
    }
    for (const signature of signatures) {
      if (await crypto.subtle.verify(algorithms[algorithm], key, unshared(signature), message)) return true;
    }
    return false;
  }

  return async (signatures, signed) => {
    if (signatures.length === 0 || (!isSecret && signatures.length > maxVerifications)) return false;
    imported ??= await Promise.all(keys.map((key) => importKey(algorithm, key)));
    const message = joined(signed);
    for (const key of imported) if (await matches(key, signatures, message)) return true;
    return false;
  };
}

/** HMAC-SHA256 of a text. */
export async function hmacSha256(secret: Key, text: string): Promise<Uint8Array> {
  const key = await importKey("HMAC-SHA256", secret);
  return new Uint8Array(await crypto.subtle.sign("HMAC", key, new TextEncoder().encode(text)));
}

/**
 * A one-way tag of a secret or public key, 32 digits of hex, which stands for the secret in the scope of keys. Use it
 * to inspect or free the key of a delivery whose provider has no name of its own.
 *
 * @example
 * const scope = ["stripe", await secretTag(env.STRIPE_WEBHOOK_SECRET)];
 * await inspectKey(idempotency, id, { kind: "http", handler: "/webhooks/stripe", scope });
 */
export async function secretTag(secret: Key): Promise<string> {
  return toHex((await hmacSha256(secret, "redlock-edge: scope of a secret")).subarray(0, 16));
}

/** Imports a key to check signatures with, and a secret also to make them. */
export async function importKey(algorithm: SignatureAlgorithm, key: Key): Promise<CryptoKey> {
  const parameters = algorithms[algorithm];
  const isSecret = parameters.name === "HMAC";
  const bytes = encoded(key);
  const format = isSecret || bytes.length === 32 ? "raw" : "spki";
  try {
    return await crypto.subtle.importKey(format, bytes, parameters, false, [isSecret ? "sign" : "verify"]);
  } catch {
    throw new TypeError(`a key cannot be used for ${algorithm} (is it the right variable, and all of it?)`);
  }
}

/** The signed bytes, as one array. A single one is not copied: bodies may be large. */
export function joined(signed: SignedParts): Uint8Array<ArrayBuffer> {
  const parts = typeof signed === "string" || signed instanceof Uint8Array ? [signed] : signed;
  const bytes = parts.map(encoded).filter(({ length }) => length);
  return bytes.length === 1 ? bytes[0]! : concatBytes(bytes);
}

function encoded(part: string | Uint8Array): Uint8Array<ArrayBuffer> {
  return unshared(typeof part === "string" ? new TextEncoder().encode(part) : part);
}

/**
 * Compares bytes in a time that depends on the length of the first only. Use it for what nobody may guess byte by byte,
 * with the received value first. `signatureCheck` does so with signatures.
 *
 * @example
 * if (!constantTimeEqual(new TextEncoder().encode(token), new TextEncoder().encode(env.VERIFY_TOKEN))) throw …
 */
export function constantTimeEqual(received: Uint8Array, expected: Uint8Array): boolean {
  let difference = received.length ^ expected.length;
  received.forEach((byte, index) => {
    difference |= byte ^ (expected[index] ?? 0);
  });
  return difference === 0;
}
