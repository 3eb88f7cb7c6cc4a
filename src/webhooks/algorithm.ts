/**
 * How a sender signs. Keys are secrets for HMAC; for the others public keys: their SPKI, or the 32 bytes of an Ed25519
 * key. RSA is PKCS #1 v1.5; an ECDSA signature is two numbers of 32 bytes (see `decodeDer`).
 */
export type SignatureAlgorithm =
  | "HMAC-SHA1"
  | "HMAC-SHA256"
  | "HMAC-SHA512"
  | "Ed25519"
  | "ECDSA-P256-SHA256"
  | "RSA-SHA256";

/** The algorithms as Web Crypto names them. */
export const algorithms: Readonly<
  Record<SignatureAlgorithm, { readonly name: string; readonly hash?: string; readonly namedCurve?: string }>
> = {
  "HMAC-SHA1": { name: "HMAC", hash: "SHA-1" },
  "HMAC-SHA256": { name: "HMAC", hash: "SHA-256" },
  "HMAC-SHA512": { name: "HMAC", hash: "SHA-512" },
  Ed25519: { name: "Ed25519" },
  "ECDSA-P256-SHA256": { name: "ECDSA", hash: "SHA-256", namedCurve: "P-256" },
  "RSA-SHA256": { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" },
};
