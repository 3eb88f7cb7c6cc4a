// Strings of Redis are bytes, and need not be UTF-8. Inside the engine every string is a byte string: a JavaScript string
// whose code units are bytes, from 0 to 255. It compares, slices and works as a key of a Map like bytes, and for ASCII it is
// the text itself.

const encoder = /* @__PURE__ */ new TextEncoder();
const decoder = /* @__PURE__ */ new TextDecoder("utf-8", { ignoreBOM: true });

/**
 * Encodes a text as UTF-8, into a byte string. Unpaired surrogates become U+FFFD.
 *
 * @example
 * toBytes("é").length; // 2
 */
export function toBytes(text: string): string {
  return isAscii(text) ? text : fromOctets(encoder.encode(text));
}

/**
 * Decodes a byte string as UTF-8. Bytes that are not valid UTF-8 become U+FFFD.
 *
 * @example
 * toText("\xc3\xa9"); // "é"
 */
export function toText(bytes: string): string {
  return isAscii(bytes) ? bytes : decoder.decode(toOctets(bytes));
}

/** Converts a byte string to an array of bytes. */
export function toOctets(bytes: string): Uint8Array {
  const octets = new Uint8Array(bytes.length);
  for (let index = 0; index < octets.length; index++) octets[index] = bytes.charCodeAt(index);
  return octets;
}

/** Converts an array of bytes to a byte string. */
function fromOctets(octets: Uint8Array): string {
  let bytes = "";
  for (let index = 0; index < octets.length; index++) bytes += String.fromCharCode(octets[index]!);
  return bytes;
}

const beyondAscii = /[\u0080-\uffff]/;

function isAscii(text: string): boolean {
  return !beyondAscii.test(text);
}
