import { collectionCommands } from "./collections.ts";
import type { CommandTable } from "./command.ts";
import { scriptCommands } from "./scripts.ts";
import { textCommands } from "./texts.ts";

/** The commands that redlock-edge sends, and that its scripts call. */
export const commands: CommandTable = { ...textCommands, ...collectionCommands, ...scriptCommands };
