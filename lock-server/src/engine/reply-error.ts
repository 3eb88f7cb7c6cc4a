/**
 * An error reply of Redis. The message begins with its code: `"ERR syntax error"`, `"WRONGTYPE Operation against …"`,
 * `"NOSCRIPT No matching script"`.
 *
 * @example
 * throw new ReplyError("ERR value is not an integer or out of range");
 */
export class ReplyError extends Error {
  // Set explicitly, because minifiers rename classes.
  override readonly name = "ReplyError";
}

export function syntaxError(): ReplyError {
  return new ReplyError("ERR syntax error");
}

export function wrongType(): ReplyError {
  return new ReplyError("WRONGTYPE Operation against a key holding the wrong kind of value");
}

/** A whole number in an argument, as Redis reads it: decimal digits without a space, a plus or a zero in front. */
export function integer(text: string): number {
  const value = /^(?:0|-?[1-9]\d*)$/.test(text) ? Number(text) : Number.NaN;
  if (Number.isSafeInteger(value)) return value;
  throw new ReplyError("ERR value is not an integer or out of range");
}
