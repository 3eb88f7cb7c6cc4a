import { Buffer, isUtf8 } from "node:buffer";

/** An argument of a command: text, or bytes that are not UTF-8 and so no text. */
export type Argument = string | Uint8Array;

/** Bytes as an argument: as text where they are that. */
export function argumentOf(bytes: Buffer): Argument {
  return isUtf8(bytes) ? bytes.toString() : bytes;
}

/** An argument to look at: bytes that are not UTF-8 show as U+FFFD. */
export function textOf(argument: Argument): string {
  return typeof argument === "string" ? argument : Buffer.from(argument).toString();
}

/** A command's name, in capitals. */
export function nameOf(command: readonly Argument[]): string {
  return textOf(command[0]!).toUpperCase();
}
