import type { Reply } from "../twins/twin.ts";
import { collectionCommands } from "./collections.ts";
import type { CommandContext, CommandTable } from "./command.ts";
import { CommandError, unknownCommand } from "./command-error.ts";
import { textCommands } from "./texts.ts";

/** The commands that this package sends, and that its scripts call. */
const commands: CommandTable = { ...textCommands, ...collectionCommands };

/**
 * Executes one command on one object's keys.
 *
 * @throws CommandError when Redis would answer with an error, and for every command that is not among these
 */
export function execute(context: CommandContext, [name = "", ...words]: readonly string[]): Reply {
  const upper = name.toUpperCase();
  const found = Object.hasOwn(commands, upper) ? commands[upper] : undefined;
  if (!found) throw unknownCommand(name);
  const [command, [least, most]] = found;
  if (words.length < least || words.length > most) {
    throw new CommandError(`ERR wrong number of arguments for '${upper.toLowerCase()}' command`);
  }
  return command(context, words);
}
