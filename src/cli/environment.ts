import { createInterface } from "node:readline/promises";
import type { Text } from "./text.ts";

/** The exit codes of all commands. */
export const exitCode = { done: 0, failed: 1, usage: 2, nothing: 3, refused: 4 } as const;

export type ExitCode = (typeof exitCode)[keyof typeof exitCode];

/** What each exit code means. */
export const exitCodes: readonly (readonly [code: string, meaning: string])[] = [
  ["0", "done, or there is something: a holder, a record, or every endpoint is well"],
  ["1", "failed: too few endpoints answered, it is undecided, or doctor found an error"],
  ["2", "the command line or a variable is wrong; nothing was changed"],
  ["3", "there is nothing: it is free, has no record, or nothing is held"],
  ["4", "not done: you answered no, or a run of the key is under way"],
];

/** The surroundings of a command. */
export interface Environment {
  /** Prints a line to standard output. */
  out(line: string): void;
  /** Prints a line to standard error. */
  warn(line: string): void;
  /** The widest line, in characters, or Infinity if there is no terminal. */
  readonly width: number;
  /** The variables that name the endpoints. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The folder in which the user works: its packages are the user's. */
  readonly folder: string;
  /** The package's version. */
  version(): Promise<string>;
  /** Asks the person at the terminal, or undefined if there is no terminal. */
  readonly ask?: ((question: string) => Promise<string>) | undefined;
}

/** The outcome of a command. */
export interface Outcome {
  readonly code: ExitCode;
  /** For `--json`. */
  readonly fields: object;
  /** For people. */
  readonly text: Text;
}

/** A command line that is not valid. The message is one line. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** A terminal, or its stand-in in a test. */
export interface Terminal {
  readonly input: NodeJS.ReadableStream;
  readonly output: NodeJS.WritableStream;
}

/** Asks at a terminal. Ctrl-C and the end of the input are an empty answer. */
export async function askAt({ input, output }: Terminal, question: string): Promise<string> {
  const terminal = createInterface({ input, output, terminal: true });
  const cancel = new AbortController();
  terminal.once("SIGINT", () => cancel.abort());
  terminal.once("close", () => cancel.abort());
  try {
    return await terminal.question(question, { signal: cancel.signal });
  } catch {
    // The next line must not begin behind the question.
    output.write("\n");
    return "";
  } finally {
    terminal.close();
  }
}
