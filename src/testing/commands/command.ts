import type { Keyspace } from "./keyspace.ts";
import { type ByteReply, ReplyError } from "./reply.ts";

/** One command of the engine. The name is its key in a {@link Commands} table, in capitals. */
export interface Command {
  /** Words including the name; negative: at least so many. */
  readonly arity: number;
  /**
   * Which arguments (counted from 0, without the name) are keys: the first, the last (negative: from the
   * end), every how many. Absent: none.
   */
  readonly keys?: readonly [first: number, last: number, step: number];
  /** Whether it may change something. Default false. */
  readonly write?: boolean;
  /** Whether it is about the whole database, not about single keys. Default false. */
  readonly wholeDatabase?: boolean;
  /** Executes it on byte strings, without the name. @throws ReplyError */
  run(space: Keyspace, words: readonly string[]): ByteReply;
}

/** Commands by name, in capitals. */
export type Commands = Readonly<Record<string, Command>>;

/** Whether a command takes that many words, its name included. */
export function acceptsWords(command: Command, words: number): boolean {
  return command.arity < 0 ? words >= -command.arity : words === command.arity;
}

/** The keys among a command's arguments. */
export function keysOf(command: Command, words: readonly string[]): string[] {
  if (!command.keys) return [];
  const [first, last, step] = command.keys;
  const end = last < 0 ? words.length + last : last;
  return words.slice(first, end + 1).filter((_, position) => position % step === 0);
}

/** @param name the command in small letters, as Redis prints it */
export function wrongNumberOfArguments(name: string): ReplyError {
  return new ReplyError(`ERR wrong number of arguments for '${name}' command`);
}

/** Turns a flat list of pairs into pairs. @throws ReplyError when one is incomplete */
export function pairs(name: string, words: readonly string[]): [string, string][] {
  if (words.length % 2 !== 0) throw wrongNumberOfArguments(name);
  return words.flatMap((word, position) =>
    position % 2 === 0 ? [[word, words[position + 1]!] as [string, string]] : [],
  );
}

/**
 * Resolves a range of indexes as Redis does: negative ones count from the end, both ends are included.
 * Returns what `slice` takes; an empty range is [0, 0].
 */
export function range(start: number, stop: number, length: number): [from: number, to: number] {
  const from = Math.max(0, start < 0 ? length + start : start);
  const to = Math.min(length, (stop < 0 ? length + stop : stop) + 1);
  return from < to ? [from, to] : [0, 0];
}
