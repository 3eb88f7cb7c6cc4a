import { type ParseArgsConfig, parseArgs } from "node:util";
import { nearest } from "../check.ts";
import { checkDialect, type Dialect } from "../endpoints/endpoint.ts";

/** The exit codes, for all commands; `--help` has the same table. */
export const exitCode = { done: 0, failed: 1, usage: 2, nothing: 3, refused: 4 } as const;

export type ExitCode = (typeof exitCode)[keyof typeof exitCode];

/** What each exit code means. */
export const exitCodes = `Exit codes:
  0  done, or what was asked for is there: held, a record, dead, every endpoint is well
  1  failed: too few endpoints answered, undecided, or doctor found an error
  2  wrong usage; nothing was sent
  3  nothing is there: free, no record, nothing to free or forget, not dead, a latch not open
  4  not done: you answered no, or a run of the key is under way
`;

/** What a command has of its surroundings. */
export interface CommandEnvironment {
  /** Prints a line to standard output. */
  out(line: string): void;
  /** Prints a line to standard error. */
  warn(line: string): void;
  /** Aborts when the command should stop and exit. */
  readonly stop: AbortSignal;
  /** The variables that name the endpoints. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The package's version. */
  version(): Promise<string>;
  /** Asks the person at the terminal; undefined where there is none. */
  readonly ask?: ((question: string) => Promise<string>) | undefined;
  /** Shows what is waited for, or removes it again; undefined where standard error is not a terminal. */
  readonly progress?: ((text: string | undefined) => void) | undefined;
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

/** One command of `redlock-edge`. */
export interface Command {
  readonly name: string;
  /** For the list of commands. */
  readonly summary: string;
  /** The text of `--help`. */
  readonly help: string;
  run(args: readonly string[], environment: CommandEnvironment): Promise<ExitCode>;
}

type Options = NonNullable<ParseArgsConfig["options"]>;

/** A parsed command line. */
export type Line<Known extends Options> = ReturnType<
  typeof parseArgs<{ options: Known; allowPositionals: true; strict: true }>
>;

/** A command from its options and what it does with their values. */
export function defineCommand<const Known extends Options>(definition: {
  readonly name: string;
  readonly summary: string;
  readonly help: string;
  readonly options: Known;
  run(line: Line<Known>, environment: CommandEnvironment): Promise<ExitCode>;
}): Command {
  const { name, summary, help, options } = definition;
  return {
    name,
    summary,
    help,
    run: (args, environment) => definition.run(parseLine(args, options), environment),
  };
}

/** @throws UsageError when the line does not fit the options */
export function parseLine<const Known extends Options>(args: readonly string[], options: Known): Line<Known> {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true, strict: true });
  } catch (error) {
    // Node adds a long explanation; its first sentence is enough.
    const message = (error as Error).message.split(/\.\s|\n/)[0]!.replace(/\.$/, "");
    const unknown = /^Unknown option '--(.*)'$/.exec(message)?.[1];
    throw new UsageError(unknown === undefined ? message : `${message}${hintFor(unknown, options)}`);
  }
}

function hintFor(unknown: string, options: Options): string {
  // inspect and watch have it; those that follow on them do not.
  if (unknown === "key") return ": the key is the argument, without --key";
  const near = nearest(unknown, Object.keys(options));
  return near === undefined ? "" : `; did you mean --${near}?`;
}

/** The one argument of a command. `what` names it. */
export function onlyArgument(positionals: readonly string[], what: string): string {
  const [only, extra] = positionals;
  if (only === undefined || only === "") throw new UsageError(`${what} is missing`);
  if (extra !== undefined) throw new UsageError(`unexpected argument '${extra}'`);
  return only;
}

export function noArgument([extra]: readonly string[]): void {
  if (extra !== undefined) throw new UsageError(`unexpected argument '${extra}'`);
}

/** The value of `--dialect`. */
export function dialectOption(value: string | undefined): Dialect | undefined {
  try {
    return checkDialect(value as Dialect | undefined);
  } catch (error) {
    throw new UsageError(`--${(error as Error).message}`);
  }
}

export function integer(option: string, value: string): number {
  if (!/^\d+$/.test(value)) throw new UsageError(`${option} takes a whole number, not '${value}'`);
  return Number(value);
}
