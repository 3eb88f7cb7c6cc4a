import { parseArgs } from "node:util";
import { isRedlockError } from "../index.ts";
import { type Command, commands } from "./commands.ts";
import { type Environment, type ExitCode, exitCode, exitCodes, UsageError } from "./environment.ts";
import { commonOptions, didYouMean, type OptionName, options, type Values } from "./options.ts";
import { jsonLine, layout } from "./text.ts";

/** The `redlock-edge` command. Resolves with the exit code. */
export async function runCommand(args: readonly string[], environment: Environment): Promise<ExitCode> {
  const { out, warn, width } = environment;
  const helpWidth = Number.isFinite(width) ? width : 80;
  const print = (lines: readonly string[]) => {
    for (const line of lines) out(line);
  };
  const [first, ...others] = args;
  // `help inspect` is `inspect --help`.
  const [name, ...rest] = first === "help" && others.length > 0 ? [...others, "--help"] : args;
  const command = commands.find((each) => each.name === name);
  try {
    if (name === "--help" || name === "-h" || name === "help") print(helpOfAll(helpWidth));
    else if (name === "--version" || name === "-v") out(await environment.version());
    else if (!command) throw new UsageError(unknownCommand(name));
    else {
      const { argument, values } = parseLine(command, rest);
      if (values.help) print(helpOf(command, helpWidth));
      else {
        const outcome = await command.run(argument, values, environment);
        if (outcome && values.json) out(jsonLine({ command: name, ...outcome.fields }));
        else if (outcome) print(outcome.lines(width));
        return outcome?.code ?? exitCode.done;
      }
    }
    return exitCode.done;
  } catch (error) {
    const { message, cause } = error as Error;
    const misused = error instanceof UsageError || error instanceof TypeError || error instanceof RangeError;
    for (const line of layout([[`redlock-edge: ${message}`]], width)) warn(line);
    if (misused) warn(`Try: redlock-edge ${command ? `${command.name} ` : ""}--help`);
    else if (rest.includes("--json")) {
      const known = [error, cause].find(isRedlockError);
      out(jsonLine({ command: name, error: { code: known?.code ?? "FAILED", message } }));
    }
    return misused ? exitCode.usage : exitCode.failed;
  }
}

function unknownCommand(name: string | undefined): string {
  const names = commands.map((each) => each.name);
  if (name === undefined) return `a command is missing: ${names.join(", ")}`;
  const hint = didYouMean(name, [...names, "--help", "--version"]);
  return `unknown command '${name}'${hint || `, there are: ${names.join(", ")}`}`;
}

/** The argument of a command line, and the values of all options. */
function parseLine(command: Command, args: readonly string[]): { argument: string; values: Values } {
  const { values: given, positionals } = parsed(args, optionsOf(command));
  const values = Object.fromEntries(
    Object.entries(options).map(([name, { default: usual, check }]) => {
      const value = given[name];
      return [name, typeof value === "string" && check ? check(`--${name}`, value) : (value ?? usual)];
    }),
  ) as unknown as Values;
  return { values, argument: values.help ? "" : argumentOf(command, values, positionals) };
}

type Given = Readonly<Record<string, unknown>>;

/** @throws UsageError with what is wrong, and what may be meant */
function parsed(
  args: readonly string[],
  names: readonly OptionName[],
): { values: Given; positionals: string[] } {
  const known = names.map((name) => {
    const { takes, isList: multiple = false } = options[name];
    const short = name === "help" ? { short: "h" } : {};
    return [name, { type: takes ? "string" : "boolean", multiple, ...short }] as const;
  });
  try {
    return parseArgs({ args: [...args], options: Object.fromEntries(known), allowPositionals: true });
  } catch (error) {
    // Node adds a long explanation; its first sentence is enough.
    const message = (error as Error).message.split(/\.\s|\n/)[0]!.replace(/\.$/, "");
    const unknown = /^Unknown option '--(.*)'$/.exec(message)?.[1];
    // inspect and watch have it; those that follow on them do not.
    if (unknown === "key") throw new UsageError(`${message}: the key is the argument, without --key`);
    throw new UsageError(message + (unknown === undefined ? "" : didYouMean(unknown, names, "--")));
  }
}

function argumentOf({ argument }: Command, { key }: Values, positionals: readonly string[]): string {
  const [only = "", extra] = positionals;
  const unexpected = argument === undefined ? positionals[0] : extra;
  if (unexpected !== undefined) throw new UsageError(`unexpected argument '${unexpected}'`);
  if (key === "") throw new UsageError("the key is missing");
  if (key !== undefined && only !== "") throw new UsageError("either a resource or --key, not both");
  if (argument !== undefined && key === undefined && only === "")
    throw new UsageError(`${argument} is missing`);
  return only;
}

/** The options that a command takes. */
const optionsOf = (command: Command): OptionName[] => [...command.options, ...commonOptions];

const endpoints =
  "The endpoints are those that endpointsFromEnv finds in the environment, UPSTASH_REDIS_REST_URL_1 and UPSTASH_REDIS_REST_TOKEN_1, _2, …, or in a file: --read-env .dev.vars. They must be the same as your program's.";

function helpOfAll(width: number): string[] {
  return [
    "Usage: redlock-edge <command> [options]",
    "",
    ...layout(
      commands.map(({ name, summary }) => [`  ${name}`, summary]),
      width,
    ),
    "",
    ...layout(
      [
        ["  redlock-edge <command> --help", "its options, with an example"],
        ["  redlock-edge --version", "the version"],
      ],
      width,
    ),
    "",
    ...layout([[endpoints]], width),
    "",
    "Exit codes:",
    ...layout(
      exitCodes.map(([code, meaning]) => [`  ${code}`, meaning]),
      width,
    ),
  ];
}

function helpOf(command: Command, width: number): string[] {
  const { name, usage, text, examples } = command;
  return [
    ...layout(
      usage.map((words, index) => [index === 0 ? "Usage:" : "", `redlock-edge ${name} ${words}`]),
      width,
    ),
    "",
    ...layout([[text]], width),
    "",
    ...examples.map((line) => `  npx redlock-edge ${line}`),
    "",
    ...layout(optionsOf(command).map(optionCells), width),
    "",
    "Endpoints and exit codes: redlock-edge --help",
  ];
}

function optionCells(name: OptionName): string[] {
  const { takes, doc, default: usual } = options[name];
  const isShown = typeof usual === "number" || typeof usual === "string";
  return [`  --${name}${takes ? ` ${takes}` : ""}`, isShown ? `${doc} (${usual})` : doc];
}
