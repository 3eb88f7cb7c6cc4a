import { concatBytes, toHex, unshared } from "../runtime/bytes.ts";

/** An RSA signature's length depends on the key. */
export const algorithms = {
  "HMAC-SHA1": { name: "HMAC", hash: "SHA-1", signatureLength: 20 },
  "HMAC-SHA256": { name: "HMAC", hash: "SHA-256", signatureLength: 32 },
  "HMAC-SHA512": { name: "HMAC", hash: "SHA-512", signatureLength: 64 },
  Ed25519: { name: "Ed25519", signatureLength: 64 },
  "ECDSA-P256-SHA256": { name: "ECDSA", hash: "SHA-256", namedCurve: "P-256", signatureLength: 64 },
  "RSA-SHA256": { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256", signatureLength: undefined },
} as const;

/** How a sender signs. RSA is PKCS #1 v1.5. An ECDSA signature is two numbers of 32 bytes (see `decodeDer`). */
export type SignatureAlgorithm = keyof typeof algorithms;

/** A secret, or a public key: its SPKI, or the 32 bytes of an Ed25519 key. A string stands for its UTF-8. */
export type Key = string | Uint8Array;

/** The signed bytes, one part after the other. Strings stand for their UTF-8. */
export type SignedParts = string | Uint8Array | readonly (string | Uint8Array)[];

/** Resolves to true if any of the keys made any of the signatures. */
export type SignatureCheck = (signatures: readonly Uint8Array[], signed: SignedParts) => Promise<boolean>;

/** Each costs a pass over the body per key, so a forged request could demand any number of passes. */
const maxVerifications = 4;

/**
 * Makes a check with one key, or several while a secret is rotated. HMACs are compared in constant time. Public keys
 * check at most four signatures: of more, none is checked, and the result is false.
 *
 * @param keys secrets for HMAC, else public keys (see `decodePublicKey`)
 * @throws {TypeError} there is no key, or an empty one. From the check: a key does not fit the algorithm
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
  // Not a promise of them: on Workers a promise belongs to its request, and may never settle after it.
  let imported: readonly CryptoKey[] | undefined;

  async function matches(
    key: CryptoKey,
    signatures: readonly Uint8Array[],
    message: Uint8Array<ArrayBuffer>,
  ): Promise<boolean> {
    if (isSecret) {
      // Once, because the pass over a large body is the cost.
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

export async function hmacSha256(secret: Key, text: string): Promise<Uint8Array> {
  const key = await importKey("HMAC-SHA256", secret);
  return new Uint8Array(await crypto.subtle.sign("HMAC", key, new TextEncoder().encode(text)));
}

/**
 * A one-way tag of a secret or public key, which stands for it in the scope of keys. Use it to inspect or free the key
 * of a delivery whose provider has no name of its own.
 *
 * @example
 * const scope = ["stripe", await secretTag(env.STRIPE_WEBHOOK_SECRET)];
 * await inspectKey(idempotency, id, { kind: "http", handler: "/webhooks/stripe", scope });
 */
export async function secretTag(secret: Key): Promise<string> {
  return toHex((await hmacSha256(secret, "redlock-edge: scope of a secret")).subarray(0, 16));
}

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

/** A single part is not copied, because bodies may be large. */
export function joined(signed: SignedParts): Uint8Array<ArrayBuffer> {
  const parts = typeof signed === "string" || signed instanceof Uint8Array ? [signed] : signed;
  const bytes = parts.map(encoded).filter(({ length }) => length);
  return bytes.length === 1 ? bytes[0]! : concatBytes(bytes);
}

function encoded(part: string | Uint8Array): Uint8Array<ArrayBuffer> {
  return unshared(typeof part === "string" ? new TextEncoder().encode(part) : part);
}

/**
 * Compares bytes in a time that depends on the first one's length only: pass the received value first.
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
