import { toHex } from "../runtime/bytes.ts";

/**
 * Decodes hex in either case, or returns `undefined`.
 *
 * @example
 * decodeHex("00ff"); // Uint8Array [0, 255]
 * decodeHex("0xff"); // undefined
 */
export function decodeHex(text: string): Uint8Array | undefined {
  if (!/^(?:[0-9a-f]{2})*$/i.test(text)) return undefined;
  return Uint8Array.from(text.match(/../g) ?? [], (digits) => Number.parseInt(digits, 16));
}

/**
 * Decodes canonical, padded base64, or returns `undefined`.
 *
 * @example
 * decodeBase64("AP8="); // Uint8Array [0, 255]
 * decodeBase64("AP8"); // undefined
 */
export function decodeBase64(text: string): Uint8Array | undefined {
  const form = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
  if (!form.test(text)) return undefined;
  const binary = atob(text);
  // atob ignores the unused bits before the padding, so one signature would have several spellings.
  if (btoa(binary) !== text) return undefined;
  return Uint8Array.from(binary, (character) => character.charCodeAt(0));
}

/**
 * Decodes canonical base64url without padding, as in a JWT, or returns `undefined`.
 *
 * @example
 * decodeBase64Url("AP8"); // Uint8Array [0, 255]
 * decodeBase64Url("AP8="); // undefined
 */
export function decodeBase64Url(text: string): Uint8Array | undefined {
  if (!/^[\w-]*$/.test(text)) return undefined;
  const base64 = text.replaceAll("-", "+").replaceAll("_", "/");
  return decodeBase64(base64.padEnd(Math.ceil(base64.length / 4) * 4, "="));
}

/**
 * Decodes a public key as senders show it: base64 of its SPKI or Ed25519's 32 bytes, with or without the lines of PEM.
 *
 * @throws {TypeError} it is anything else. The message does not repeat it
 *
 * @example
 * const key = decodePublicKey(env.SENDGRID_PUBLIC_KEY);
 */
export function decodePublicKey(text: string): Uint8Array {
  const lines = /-----(?:BEGIN|END) PUBLIC KEY-----|\s/g;
  const bytes = typeof text === "string" ? decodeBase64(text.replace(lines, "")) : undefined;
  if (!bytes?.length) {
    throw new TypeError(
      "publicKey must be base64, with or without the lines of PEM: several are an array (is the variable set?)",
    );
  }
  return bytes;
}

/**
 * Converts an ECDSA signature from DER to Web Crypto's 64 bytes, or returns `undefined` if it is not the shortest DER.
 *
 * @example
 * const signature = decodeDer(decodeBase64(header)); // 64 bytes
 */
export function decodeDer(der: Uint8Array | undefined): Uint8Array | undefined {
  if (der === undefined || der[0] !== 0x30 || der[1] !== der.length - 2) return undefined;
  const raw = new Uint8Array(64);
  let offset = 2;
  for (const end of [32, 64]) {
    const [tag, length = 0] = der.subarray(offset, offset + 2);
    const number = der.subarray(offset + 2, offset + 2 + length);
    const [first = 0x80, second = 0] = number;
    // The highest bit is the sign, so only a number that has it follows a zero.
    const isPadded = first === 0 && second >= 0x80;
    const digits = isPadded ? number.subarray(1) : number;
    const isShortest = first < 0x80 && (first > 0 || isPadded);
    if (tag !== 2 || !isShortest || digits.length > 32) return undefined;
    raw.set(digits, end - digits.length);
    offset += 2 + length;
  }
  return offset === der.length ? raw : undefined;
}

/** Lower-case hex, base64 (padded), or base64url (not padded). */
export type Encoding = "hex" | "base64" | "base64url";

/**
 * Encodes bytes as text.
 *
 * @example
 * encodeBytes(Uint8Array.of(0, 255), "base64url"); // "AP8"
 */
export function encodeBytes(bytes: Uint8Array, encoding: Encoding): string {
  if (encoding === "hex") return toHex(bytes);
  const base64 = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
  if (encoding === "base64") return base64;
  return base64.replaceAll("+", "-").replaceAll("/", "_").replace(/=+/, "");
}
