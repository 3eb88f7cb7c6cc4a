import type { Keyspace } from "./keyspace.ts";
import { type ByteReply, ReplyError } from "./reply.ts";

/** One command of the engine. Its name is its key in a {@link Commands} table. */
export interface Command {
  /** Number of words including the name, as in Redis's COMMAND INFO: -3 means at least 3. */
  readonly arity: number;
  /**
   * Positions of the keys among the arguments, counted from 0 without the name: the first, the last (negative: from the
   * end), and the step between them; or a function that finds the keys. Default: no keys.
   */
  readonly keys?:
    | readonly [first: number, last: number, step: number]
    | ((words: readonly string[]) => readonly string[]);
  /** Whether it may write. Default false. */
  readonly write?: boolean;
  /** Whether it accesses the whole database instead of single keys. Default false. */
  readonly wholeDatabase?: boolean;
  /** Executes it. `words` are its arguments as byte strings, a subcommand's name first. Throws a `ReplyError` where Redis answers with an error. */
  run(space: Keyspace, words: readonly string[]): ByteReply;
}

/** Commands by name, in upper case. */
export type Commands = Readonly<Record<string, Command>>;

/** Whether a command accepts this number of words, its name included. */
export function acceptsWords(command: Command, words: number): boolean {
  return command.arity < 0 ? words >= -command.arity : words === command.arity;
}

/** The keys among the arguments of a command. */
export function keysOf(command: Command, words: readonly string[]): readonly string[] {
  if (!command.keys) return [];
  if (typeof command.keys === "function") return command.keys(words);
  const [first, last, step] = command.keys;
  const end = last < 0 ? words.length + last : last;
  return words.slice(first, end + 1).filter((_, position) => position % step === 0);
}

/** A command on the key that is its first argument, and that only reads. */
export function reads(arity: number, run: Command["run"]): Command {
  return { arity, keys: [0, 0, 1], run };
}

/** A command on the key that is its first argument, and that may write. */
export function writes(arity: number, run: Command["run"]): Command {
  return { arity, keys: [0, 0, 1], write: true, run };
}

/**
 * The {@link Command.keys} of a command whose keys have their number before them.
 *
 * @param at the position of that number
 */
export function countedKeys(at: number): (words: readonly string[]) => readonly string[] {
  return (words) => [...words.slice(0, at), ...words.slice(at + 1, at + 1 + Number(words[at]))];
}

/** The error for too few or too many arguments. `name` is in lower case, as Redis prints it. */
export function wrongNumberOfArguments(name: string): ReplyError {
  return new ReplyError(`ERR wrong number of arguments for '${name}' command`);
}

/** Groups a flat list into pairs. Throws a `ReplyError` if the last pair is incomplete. */
export function pairs(name: string, words: readonly string[]): [string, string][] {
  if (words.length % 2 !== 0) throw wrongNumberOfArguments(name);
  return words.flatMap((word, position) =>
    position % 2 === 0 ? [[word, words[position + 1]!] as [string, string]] : [],
  );
}

/**
 * Converts a range of Redis to the arguments of `slice`. In Redis, negative indexes count from the end and both ends
 * are included. An empty range is [0, 0].
 */
export function range(start: number, stop: number, length: number): [from: number, to: number] {
  const from = Math.max(0, start < 0 ? length + start : start);
  const to = Math.min(length, (stop < 0 ? length + stop : stop) + 1);
  return from < to ? [from, to] : [0, 0];
}
