import { parseArgs } from "node:util";
import { isRedlockError } from "../index.ts";
import { type Access, openAccess } from "./access.ts";
import { type Command, commands } from "./commands.ts";
import { type Environment, type ExitCode, exitCode, exitCodes, UsageError } from "./environment.ts";
import {
  commonOptions,
  didYouMean,
  type Option,
  type OptionName,
  optionNear,
  options,
  type Values,
} from "./options.ts";
import { jsonLine, layout, type Text } from "./text.ts";

/** The `redlock-edge` command. Resolves with the exit code. */
export async function runCommand(args: readonly string[], environment: Environment): Promise<ExitCode> {
  const { out, warn, width } = environment;
  const [name, ...rest] = args;
  const command = commands.find((each) => each.name === name);
  let access: Access | undefined;
  try {
    const help = await helpFor(args, environment);
    if (help) return print(help, environment, 80);
    if (!command) throw new UsageError(unknownCommand(name));
    const { argument, values } = parseLine(command, rest);
    if (values.help) return print(helpOf(command), environment, 80);
    access = await openAccess(values, environment);
    const outcome = await command.run({ argument, values, access, environment });
    if (values.json) out(jsonLine({ command: name, ...outcome.fields }));
    else print(outcome.text, environment);
    return outcome.code;
  } catch (error) {
    const { message, cause } = error as Error;
    const misused = error instanceof UsageError || error instanceof TypeError || error instanceof RangeError;
    for (const line of layout([`redlock-edge: ${message}`], width)) warn(line);
    if (misused) warn(`Try: redlock-edge ${command ? `${command.name} ` : ""}--help`);
    else if (rest.includes("--json")) {
      const known = [error, cause].find(isRedlockError);
      out(jsonLine({ command: name, error: { code: known?.code ?? "FAILED", message } }));
    }
    return misused ? exitCode.usage : exitCode.failed;
  } finally {
    for (const { close } of access?.places ?? []) close();
  }
}

function print(text: Text, { out, width }: Environment, most: number = Infinity): ExitCode {
  for (const line of layout(text, Math.min(width, most))) out(line);
  return exitCode.done;
}

/** The text that a command line asks for instead of a command. */
async function helpFor(
  [name, about]: readonly string[],
  { version }: Environment,
): Promise<Text | undefined> {
  if (/^(?:--version|-v|version)$/.test(name ?? "")) return [await version()];
  if (!/^(?:--help|-h|help)$/.test(name ?? "")) return undefined;
  const command = commands.find((each) => each.name === about);
  if (!command && name === "help" && about) throw new UsageError(unknownCommand(about));
  return command ? helpOf(command) : helpOfAll();
}

function unknownCommand(given: string | undefined): string {
  const names = commands.map(({ name }) => name);
  const known = `there are ${names.join(", ")}`;
  if (given === undefined) return `a command is missing; ${known}`;
  const meant = commands.find(({ foreign }) => foreign.split(" ").includes(given))?.name;
  return `unknown command '${given}'${didYouMean(meant ?? given, names) || `; ${known}`}`;
}

/**
 * The argument of a command line, and the values of all options.
 *
 * @throws UsageError with the mistake and a proposal
 */
function parseLine(command: Command, args: readonly string[]): { argument: string; values: Values } {
  const names = optionsOf(command);
  const known = names.map((name) => {
    const { takes, isList: multiple = false } = option(name);
    const short = name === "help" ? { short: "h" } : {};
    return [name, { type: takes ? "string" : "boolean", multiple, ...short }] as const;
  });
  try {
    const all = { args: [...args], options: Object.fromEntries(known), allowPositionals: true };
    const { values: given, positionals } = parseArgs(all);
    const values = Object.keys(options).map((name) => {
      const { default: usual, check } = option(name as OptionName);
      const value = given[name];
      return [name, typeof value === "string" && check ? check(`--${name}`, value) : (value ?? usual)];
    });
    return argumentOf(command, Object.fromEntries(values), positionals);
  } catch (error) {
    const { code = "", message } = error as NodeJS.ErrnoException;
    if (!code.startsWith("ERR_PARSE_ARGS")) throw error;
    throw new UsageError(correction(message, names) ?? message.replaceAll("\n", " "));
  }
}

/** What is wrong with an option, and what to write instead. Undefined: Node says that. Values may begin with a dash. */
function correction(message: string, names: readonly OptionName[]): string | undefined {
  const [what, dashes, unknown = ""] = /^Unknown option '(--?)(.*?)'/.exec(message) ?? [];
  const near = optionNear(unknown, names);
  if (what === undefined || (dashes === "-" && !near)) return undefined;
  if (near) return `${what}; did you mean --${near}?`;
  const elsewhere = optionNear(unknown, Object.keys(options) as OptionName[]);
  const owners = commands.filter((command) => elsewhere && command.options.includes(elsewhere));
  if (owners.length > 0)
    return `${what}; --${elsewhere} is an option of ${owners.map(({ name }) => name).join(", ")}`;
  return `${what}; there are ${names.map((name) => `--${name}`).join(", ")}`;
}

function argumentOf({ name, usage }: Command, values: Values, words: readonly string[]) {
  const { key, help } = values;
  if (help) return { argument: "", values };
  const [argument = "", extra] = usage[0]!.startsWith("<") ? words : ["", ...words];
  if (key === "") throw new UsageError("the key is missing");
  if (usage[0] !== "" && key === undefined && argument === "")
    throw new UsageError(`${name} needs ${usage.join(", or ")}`);
  if (extra !== undefined && name === "list")
    throw new UsageError(`list shows all names; to see one: redlock-edge inspect ${extra}`);
  if (extra !== undefined) throw new UsageError(`unexpected argument '${extra}'`);
  if (key !== undefined && argument !== "") throw new UsageError("either a resource or --key, not both");
  return { argument, values };
}

/** A row of the table, whatever its value is. */
const option = (name: OptionName): Option<unknown> => options[name];

/** The options that a command takes. */
const optionsOf = (command: Command): OptionName[] => [...command.options, ...commonOptions];

const endpoints =
  "Endpoints are read from the environment, or with --read-env from a file such as .dev.vars: UPSTASH_REDIS_REST_URL and UPSTASH_REDIS_REST_TOKEN, or REDIS_URL (redis:// or rediss://), which needs ioredis or redis in your project. Number several databases: REDIS_URL_1, REDIS_URL_2, … Use the same endpoints as your program, because other endpoints have another quorum.";

function helpOfAll(): Text {
  return [
    "Usage: redlock-edge <command> [options]",
    "",
    ...commands.map(({ name, summary }) => [`  ${name}`, summary]),
    ["  <command> --help", "the options of a command, with an example"],
    ["  --version", "the version"],
    "",
    endpoints,
    "",
    "Exit codes:",
    ...exitCodes.map(([code, meaning]) => [`  ${code}`, meaning]),
  ];
}

function helpOf(command: Command): Text {
  const { name, usage, text, examples } = command;
  const lines = usage.map((words) => ["redlock-edge", name, words, "[options]"].filter(Boolean).join(" "));
  return [
    ...lines.map((line, index) => [index === 0 ? "Usage:" : "", line]),
    "",
    text,
    "",
    ...examples.map((line) => [`  npx redlock-edge ${line}`]),
    "",
    ...optionsOf(command).map(optionCells),
    "",
    "Endpoints and exit codes: redlock-edge --help",
  ];
}

function optionCells(name: OptionName): string[] {
  const { takes, doc, default: usual } = option(name);
  const isShown = typeof usual === "number" || typeof usual === "string";
  return [`  --${name}${takes ? ` ${takes}` : ""}`, isShown ? `${doc} (${usual})` : doc];
}
