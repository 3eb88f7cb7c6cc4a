import { isId } from "./provider.ts";

/**
 * SHA-256 of a body as 64 digits of hex: an id where the sender gives none that is signed. What is sent twice
 * byte for byte has the same one, also when it is sent again on purpose.
 *
 * @example
 * return { id: await bodyHash(body), idSigned: true };
 */
export async function bodyHash(body: Uint8Array): Promise<string> {
  // Narrowed to what newer type libraries ask for: it must not be shared memory.
  const digest = await crypto.subtle.digest("SHA-256", body as Uint8Array<ArrayBuffer>);
  return Array.from(new Uint8Array(digest), (byte) => (byte + 256).toString(16).slice(1)).join("");
}

/**
 * The id in a field of a JSON body, else the body's hash: what a sender signs beside its events (a challenge,
 * a form) is as genuine, and the same bytes mean the same. Only for bodies whose signature holds.
 */
export async function bodyId(body: Uint8Array, field: string): Promise<string> {
  const id = jsonFields(body)[field];
  return isId(id) ? id : bodyHash(body);
}

/** The fields of a JSON object; none where the body is something else. */
export function jsonFields(body: Uint8Array): Readonly<Record<string, unknown>> {
  try {
    return Object(JSON.parse(new TextDecoder().decode(body)));
  } catch {
    return {};
  }
}
