/** A reply of Redis, as scripts see it. A status is a text, or whatever is not one of these and is not read. */
export type Reply = string | number | null | readonly Reply[];

/** What a script is called with. */
export interface TwinCall {
  /**
   * Executes one command, as `redis.call` does.
   *
   * @throws Error when Redis would answer with an error
   */
  readonly call: (...words: readonly (string | number)[]) => Reply;
  readonly keys: readonly string[];
  readonly args: readonly string[];
}

/**
 * A Lua script of the library, written once more in TypeScript: it calls the same commands in the same order and
 * returns the same reply, about twenty times as fast. Only for states and arguments that the library itself makes.
 */
export interface Twin {
  /** SHA-1 of the script's exact text, without Upstash's flag. A script that was changed has no twin. */
  readonly sha: string;
  readonly run: (call: TwinCall) => Reply;
}

/** The values of string keys, null for a key that does not exist: a reply to MGET. */
export type Found = readonly (string | null)[];

/** What is stored is nothing that the library writes: the script fails in Redis, too. */
export class TwinError extends Error {}

/**
 * A whole number.
 *
 * @throws TwinError for what Lua might read otherwise
 */
export function whole(text: string | number): number {
  const value = Number(text);
  if (text === "" || !Number.isSafeInteger(value)) throw new TwinError(`no whole number for a twin: ${text}`);
  return value;
}

/** The server's time in ms, as scripts read it. */
export function timeOf(call: TwinCall["call"]): number {
  const [seconds, micros] = call("TIME") as [string, string];
  return Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000);
}
