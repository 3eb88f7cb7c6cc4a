import type { CommandTable } from "./command.ts";
/** The commands that redlock-edge sends, and that its scripts call. */
export declare const commands: CommandTable;
