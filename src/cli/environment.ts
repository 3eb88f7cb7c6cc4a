import { createInterface } from "node:readline";
import type { Text } from "./text.ts";

/** The exit codes of all commands. */
export const exitCode = { done: 0, failed: 1, usage: 2, nothing: 3, refused: 4 } as const;

export type ExitCode = (typeof exitCode)[keyof typeof exitCode];

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

/** Asks at a terminal. The end of the input is an empty answer. */
export async function askAt(terminal: Pick<NodeJS.Process, "stdin" | "stderr">, question: string) {
  const { stdin: input, stderr: output } = terminal;
  output.write(question);
  for await (const line of createInterface({ input })) return line;
  // The next line must not begin behind the question.
  output.write("\n");
  return "";
}
