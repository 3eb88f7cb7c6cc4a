import type { Reply } from "../twins/twin.ts";
import type { Command, CommandContext } from "./command.ts";
import { ReplyError } from "./reply-error.ts";
/**
 * Executes one command.
 *
 * @throws ReplyError when Redis would answer with an error, and for every command that the server does not have
 */
export declare function execute(context: CommandContext, words: readonly string[]): Reply;
/**
 * The command that these words call.
 *
 * @throws ReplyError when it fails for any data: its name is unknown, or it has too few or too many words
 */
export declare function commandOf(context: CommandContext, [name, ...words]: readonly string[]): Command;
/** The error for a command, or a subcommand behind its command, that the server does not have. */
export declare function unknownCommand(context: CommandContext, name: string): ReplyError;
