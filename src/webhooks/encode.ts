import { toHex } from "../bytes.ts";

/** How bytes are written as text: lower-case hex, base64 (padded), or base64url (not padded). */
export type Encoding = "hex" | "base64" | "base64url";

/**
 * Bytes as text.
 *
 * @example
 * encodeBytes(Uint8Array.of(0, 255), "hex"); // "00ff"
 * encodeBytes(Uint8Array.of(0, 255), "base64url"); // "AP8"
 */
export function encodeBytes(bytes: Uint8Array, encoding: Encoding): string {
  if (encoding === "hex") return toHex(bytes);
  const base64 = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
  if (encoding === "base64") return base64;
  return base64.replaceAll("+", "-").replaceAll("/", "_").replace(/=+/, "");
}
