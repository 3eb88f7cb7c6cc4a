import { unshared } from "../bytes.ts";

/** HMAC-SHA256 of a text, under a secret whose text stands for its UTF-8. */
export async function hmacSha256(secret: string | Uint8Array, text: string): Promise<Uint8Array> {
  const bytes = unshared(typeof secret === "string" ? new TextEncoder().encode(secret) : secret);
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("raw", bytes, algorithm, false, ["sign"]);
  return new Uint8Array(await crypto.subtle.sign("HMAC", key, new TextEncoder().encode(text)));
}
