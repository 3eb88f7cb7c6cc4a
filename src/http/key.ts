/**
 * Parses an `Idempotency-Key` header: a string of RFC 8941 in quotes, or a bare key; both forms give the same key.
 *
 * Undefined when the key is empty, longer than 255 characters, or contains anything but visible ASCII and spaces: runtimes
 * decode other bytes differently, so a retry could get another key. A bare key has no comma: two headers arrive as
 * `a, b`, and it would be unclear which of them is the key.
 *
 * @example
 * parseKey('"a-1"'); // "a-1", as is parseKey("a-1")
 */
export function parseKey(header: string): string | undefined {
  // A quote at the beginning means the quoted form; an incomplete one is not read as a bare key.
  const quoted = /^"((?:[^"\\]|\\["\\])*)"$/.exec(header)?.[1] ?? "";
  const key = header.startsWith('"') ? quoted.replace(/\\(.)/g, "$1") : header;
  if (key === header && key.includes(",")) return undefined;
  return /^[ -~]{1,255}$/.test(key) ? key : undefined;
}
