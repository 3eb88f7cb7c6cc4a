import type { CommandTable } from "./command.ts";
export declare const scriptCommands: CommandTable;
