/**
 * What Redis answers to a command, as its JSON form over REST: a string, an integer, nil, or a list of them.
 * Integers beyond 2^53 are rounded, as a JSON client rounds them.
 */
export type Reply = string | number | null | readonly Reply[];

/**
 * An error that Redis answers with. The message begins with its code word, as on the wire:
 * `"ERR syntax error"`, `"WRONGTYPE Operation against …"`, `"NOSCRIPT No matching script. …"`.
 *
 * @example
 * throw new ReplyError("ERR value is not an integer or out of range");
 */
export class ReplyError extends Error {
  constructor(message: string) {
    super(message);
    // The name is set, not derived from the class: minifiers rename classes.
    this.name = "ReplyError";
  }
}

/**
 * A reply inside the engine, where strings are byte strings (see bytes.ts): the same as {@link Reply}, plus
 * the two kinds that only a script can tell from a string or throw: a status and an error.
 */
export type ByteReply = string | number | null | Status | ReplyError | readonly ByteReply[];

/** A status reply (`+OK`): a plain string for a client, `{ok = "OK"}` for a script. */
export class Status {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** The status that most writes answer with. */
export const ok: Status = new Status("OK");

/** The error for a word that a command does not know, or that came where it must not. */
export function syntaxError(): ReplyError {
  return new ReplyError("ERR syntax error");
}
