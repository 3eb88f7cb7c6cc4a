import { isRedlockError } from "../index.ts";
import { parseKey } from "../inspect/stored-key.ts";
import { type Access, openAccess } from "./access.ts";
import { type Command, commands } from "./commands.ts";
import { type Environment, type ExitCode, exitCode, exitCodes, UsageError } from "./environment.ts";
import {
  commonOptions,
  didYouMean,
  type Option,
  type OptionName,
  options,
  parseLine,
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
    if (/^(?:--version|-v|version)$/.test(name ?? ""))
      return print([await environment.version()], environment);
    if (/^(?:--help|-h|help)$/.test(name ?? "")) return print(helpOfAll(), environment, 80);
    if (!command) throw new UsageError(unknownCommand(name));
    const { values, positionals } = parseLine(rest, optionsOf(command));
    if (values.help) return print(helpOf(command), environment, 80);
    const argument = argumentOf(command, values, positionals);
    access = await openAccess(values, environment);
    const { code, text, fields } = await command.run({ argument, values, access, environment });
    if (values.json) out(jsonLine({ command: name, ...fields }));
    else print(text, environment);
    return code;
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

function unknownCommand(given: string | undefined): string {
  const names = commands.map(({ name }) => name);
  const known = `there are ${names.join(", ")}`;
  if (given === undefined) return `a command is missing; ${known}`;
  const meant = commands.find(({ foreign }) => foreign.split(" ").includes(given))?.name;
  return `unknown command '${given}'${didYouMean(meant ?? given, names) || `; ${known}`}`;
}

/** @throws UsageError if a word is missing, or one too many */
function argumentOf({ name, usage }: Command, { key, prefix }: Values, words: readonly string[]): string {
  const [argument = "", extra] = usage[0]!.startsWith("<") ? words : ["", ...words];
  if (key === "") throw new UsageError("the key is missing");
  if (usage[0] !== "" && key === undefined && argument === "")
    throw new UsageError(`${name} needs ${usage.join(", or ")}`);
  if (extra !== undefined) throw new UsageError(`unexpected argument '${extra}'`);
  if (key !== undefined && argument !== "") throw new UsageError("either a resource or --key, not both");
  // As a name, a pasted key is free, which says nothing of its lock.
  const pasted = parseKey(argument);
  if (pasted?.prefix === prefix)
    throw new UsageError(`${argument} is a key of Redis; the name is ${pasted.resource}`);
  return argument;
}

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
  const { takes, doc, default: usual }: Option = options[name];
  return [`  --${name}${takes ? ` ${takes}` : ""}`, typeof usual === "string" ? `${doc} (${usual})` : doc];
}
