import type { Reply, Twin } from "../twins/twin.ts";
import type { Keyspace } from "./keyspace.ts";
import type { ReplyError } from "./reply-error.ts";

/** A server, as its commands see it. */
export interface CommandContext {
  readonly space: Keyspace;
  readonly commands: CommandTable;
  /** The scripts that EVALSHA runs, by their hashes. */
  readonly scripts: ReadonlyMap<string, Twin>;
  /** How many commands were executed, those of scripts included. */
  executed: number;
  /** Sends a message, and returns how many subscribers there are. */
  publish(channel: string, payload: string): number;
  subscribers(channel: string): number;
  /** The error for what the server does not have. @param what `command 'INCR'`, `script` */
  unknown(what: string): ReplyError;
}

/** Executes a command, whose name is not among `words`. */
export type Command = (context: CommandContext, words: readonly string[]) => Reply;

/** By name: a command, and the fewest and the most words that it takes. */
export type CommandTable = Readonly<
  Record<string, readonly [command: Command, arity: readonly [least: number, most: number]]>
>;
