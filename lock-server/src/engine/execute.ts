import type { Reply } from "../twins/twin.ts";
import type { Command, CommandContext } from "./command.ts";
import { ReplyError } from "./reply-error.ts";

/**
 * Executes one command.
 *
 * @throws ReplyError when Redis would answer with an error, and for every command that the server does not have
 */
export function execute(context: CommandContext, words: readonly string[]): Reply {
  const command = commandOf(context, words);
  context.executed += 1;
  return command(context, words.slice(1));
}

/**
 * The command that these words call.
 *
 * @throws ReplyError when it fails for any data: its name is unknown, or it has too few or too many words
 */
export function commandOf(context: CommandContext, [name = "", ...words]: readonly string[]): Command {
  const upper = name.toUpperCase();
  const found = Object.hasOwn(context.commands, upper) ? context.commands[upper] : undefined;
  if (!found) throw unknownCommand(context, name);
  const [command, [least, most]] = found;
  if (words.length >= least && words.length <= most) return command;
  throw new ReplyError(`ERR wrong number of arguments for '${upper.toLowerCase()}' command`);
}

/** The error for a command, or a subcommand behind its command, that the server does not have. */
export function unknownCommand(context: CommandContext, name: string): ReplyError {
  return context.unknown(`command '${name.slice(0, 64).replaceAll(/[^\w ]/g, "?")}'`);
}
