import type { Reply } from "../twins/twin.ts";
import type { Keyspace } from "./keyspace.ts";

/** What a command works on. */
export interface CommandContext {
  readonly space: Keyspace;
  /** Sends a message, and returns how many subscribers there are. */
  publish(channel: string, payload: string): number;
  subscribers(channel: string): number;
}

/** Executes a command, whose name is not among `words`. */
export type Command = (context: CommandContext, words: readonly string[]) => Reply;

/** By name: a command, and the fewest and the most words that it takes. */
export type CommandTable = Readonly<
  Record<string, readonly [command: Command, arity: readonly [least: number, most: number]]>
>;
