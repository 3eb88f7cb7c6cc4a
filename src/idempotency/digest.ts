import { noFingerprint } from "./record.ts";

/** What a key belongs to: calls of `run()`, or requests that are answered once. Their keys never meet. */
export type KeyKind = "run" | "http";

/**
 * The hash that names a key within its kind and scope. As JSON, so that no delimiter can be smuggled in: the
 * names of two kinds are lists of different lengths.
 */
export function hashKey(
  scope: string | readonly string[],
  key: string,
  kind: KeyKind = "run",
): Promise<string> {
  const name = kind === "run" ? [scope, key] : [kind, scope, key];
  return sha256(new TextEncoder().encode(JSON.stringify(name)));
}

/** A fingerprint as it is stored: a hash, never the content. */
export function fingerprintOf(content: string | Uint8Array | undefined): Promise<string> | string {
  if (content === undefined) return noFingerprint;
  return sha256(typeof content === "string" ? new TextEncoder().encode(content) : content);
}

async function sha256(bytes: Uint8Array): Promise<string> {
  // Narrowed to what newer type libraries ask for: it must not be shared memory.
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes as Uint8Array<ArrayBuffer>));
  return Array.from(digest, (byte) => (byte + 256).toString(16).slice(1)).join("");
}
