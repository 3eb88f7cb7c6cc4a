import { Buffer, isUtf8 } from "node:buffer";

/** An argument of a command: a string, or bytes that are not valid UTF-8. */
export type Argument = string | Uint8Array;

/** @internal Bytes as an argument: a string if they are valid UTF-8. */
export function argumentOf(bytes: Buffer): Argument {
  return isUtf8(bytes) ? bytes.toString() : bytes;
}

/** An argument as text for people: bytes that are not valid UTF-8 become U+FFFD. */
export function textOf(argument: Argument): string {
  return typeof argument === "string" ? argument : Buffer.from(argument).toString();
}

/** A command's name in upper case. */
export function nameOf(command: readonly Argument[]): string {
  return textOf(command[0]!).toUpperCase();
}
