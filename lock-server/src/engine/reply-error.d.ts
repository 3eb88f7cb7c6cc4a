/**
 * An error reply of Redis. The message begins with its code: `"ERR syntax error"`, `"WRONGTYPE Operation against …"`,
 * `"NOSCRIPT No matching script"`.
 *
 * @example
 * throw new ReplyError("ERR value is not an integer or out of range");
 */
export declare class ReplyError extends Error {
  readonly name = "ReplyError";
}
export declare function syntaxError(): ReplyError;
export declare function wrongType(): ReplyError;
/** A whole number in an argument, as Redis reads it: decimal digits without a space, a plus or a zero in front. */
export declare function integer(text: string): number;
