/**
 * A reply of Redis in the JSON form of REST: a string, an integer, null for nil, or a list of replies. Integers beyond
 * 2^53 are rounded, as by a JSON client.
 */
export type Reply = string | number | null | readonly Reply[];

/**
 * An error reply of Redis. The message begins with its code: `"ERR syntax error"`, `"WRONGTYPE Operation against …"`,
 * `"NOSCRIPT No matching script. …"`.
 *
 * @example
 * throw new ReplyError("ERR value is not an integer or out of range");
 */
export class ReplyError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    // Set explicitly, because minifiers rename classes.
    this.name = "ReplyError";
  }
}

/**
 * A reply inside the engine. Unlike {@link Reply}, its strings are byte strings (see bytes.ts), and it distinguishes a
 * status and an error from a string, as scripts do.
 */
export type ByteReply = string | number | null | Status | ReplyError | readonly ByteReply[];

/** A status reply (`+OK`): a string for a client, the table `{ok = "OK"}` for a script. */
export class Status {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** The status reply of most writes. */
export const ok: Status = new Status("OK");

/** The error for an unknown or misplaced option. */
export function syntaxError(): ReplyError {
  return new ReplyError("ERR syntax error");
}
