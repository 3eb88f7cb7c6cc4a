/**
 * The key that an `Idempotency-Key` header names: quoted, as a string of RFC 8941, or bare; both forms name the
 * same key. Undefined when it is empty, longer than 255 characters, or has others than visible ASCII and spaces in
 * it: what lies beyond is read differently by different runtimes, and a retry would be a stranger. A bare one has no
 * comma: two headers arrive as `a, b`, and which of them is meant cannot be told.
 *
 * @example
 * parseKey('"a-1"'); // "a-1", as is parseKey("a-1")
 */
export function parseKey(header: string): string | undefined {
  // A quote at the beginning promises the quoted form; half of it is no bare key.
  const quoted = /^"((?:[^"\\]|\\["\\])*)"$/.exec(header)?.[1]?.replace(/\\(.)/g, "$1");
  const key = header.startsWith('"') ? quoted : header;
  if (key === undefined || (key === header && key.includes(","))) return undefined;
  return /^[ -~]{1,255}$/.test(key) ? key : undefined;
}
