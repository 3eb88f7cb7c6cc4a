/**
 * Decodes lower-case hex. Anything else gives `undefined`: upper case, an odd number of digits, white space.
 *
 * @example
 * decodeHex("00ff"); // Uint8Array [0, 255]
 * decodeHex("00FF"); // undefined
 */
export function decodeHex(text: string): Uint8Array | undefined {
  if (!/^(?:[0-9a-f]{2})*$/.test(text)) return undefined;
  return Uint8Array.from(text.match(/../g) ?? [], (digits) => Number.parseInt(digits, 16));
}

/**
 * Decodes canonical base64 (standard alphabet, padded). Anything else gives `undefined`: base64url, missing padding,
 * unused bits that are not zero.
 *
 * @example
 * decodeBase64("AP8="); // Uint8Array [0, 255]
 * decodeBase64("AP8"); // undefined
 */
export function decodeBase64(text: string): Uint8Array | undefined {
  const form = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
  if (!form.test(text)) return undefined;
  const binary = atob(text);
  // atob ignores the unused bits before the padding: one signature would have several spellings.
  if (btoa(binary) !== text) return undefined;
  return Uint8Array.from(binary, (character) => character.charCodeAt(0));
}
