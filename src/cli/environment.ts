import { unlessAborted } from "../abort.ts";

/** The exit codes, for all commands. */
export const exitCode = { done: 0, failed: 1, usage: 2, nothing: 3, refused: 4 } as const;

export type ExitCode = (typeof exitCode)[keyof typeof exitCode];

/** What each exit code means. */
export const exitCodes: readonly (readonly [code: string, meaning: string])[] = [
  ["0", "done, or what was asked for is there: held, in use, a record, every endpoint is well"],
  ["1", "failed: too few endpoints answered, undecided, or doctor found an error"],
  ["2", "wrong usage; nothing was sent"],
  ["3", "nothing is there: free, no record, nothing to free or forget"],
  ["4", "not done: you answered no, or a run of the key is under way"],
];

/** What a command has of its surroundings. */
export interface Environment {
  /** Prints a line to standard output. */
  out(line: string): void;
  /** Prints a line to standard error. */
  warn(line: string): void;
  /** The widest line, in characters; Infinity where there is no terminal. */
  readonly width: number;
  /** Aborts when the command should stop and exit. */
  readonly stop: AbortSignal;
  /** The variables that name the endpoints. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The package's version. */
  version(): Promise<string>;
  /** Asks the person at the terminal; undefined where there is none. */
  readonly ask?: ((question: string) => Promise<string>) | undefined;
}

/** What a command has to say at its end. */
export interface Outcome {
  readonly code: ExitCode;
  /** For `--json`. */
  readonly fields: object;
  /** For people, of at most so many characters. */
  readonly lines: (width: number) => string[];
}

/** A command line that is not valid. The message is one line. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** The command was ended from outside before it was done. */
export class StoppedError extends Error {
  override readonly name = "StoppedError";

  constructor() {
    super("stopped");
  }
}

/**
 * Waits for work, and no longer once the command is stopped.
 *
 * @throws StoppedError
 */
export async function untilStopped<Value>(
  { stop }: Pick<Environment, "stop">,
  work: Promise<Value>,
): Promise<Value> {
  const done = await unlessAborted(
    work.then((value) => ({ value })),
    stop,
  );
  if (!done) throw new StoppedError();
  return done.value;
}
