import { isRedlockError } from "../index.ts";
import { type Access, openAccess } from "./access.ts";
import { type Command, commands } from "./commands.ts";
import { type Environment, type ExitCode, exitCode, UsageError } from "./environment.ts";
import { commonOptions, type Option, type OptionName, options, parseLine, type Values } from "./options.ts";
import { jsonLine, layout, type Text } from "./text.ts";

/** The `redlock-edge` command. Resolves with the exit code. */
export async function runCommand(args: readonly string[], environment: Environment): Promise<ExitCode> {
  const { out, warn, width } = environment;
  const [name = "", ...rest] = args;
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
  let access: Access | undefined;
  try {
    if (/^(?:--version|-v|version)$/.test(name)) return print([await environment.version()], environment);
    if (/^(?:--help|-h|help|)$/.test(name)) return print(helpOfAll(), environment, 80);
    if (!command)
      throw new UsageError(`there is no command '${name}', but ${Object.keys(commands).join(", ")}`);
    const { values, positionals } = parseLine(rest, optionsOf(command));
    if (values.help) return print(helpOf(name, command), environment, 80);
    const argument = argumentOf(command, values, positionals);
    access = await openAccess(values, environment);
    const { code, text, fields } = await command.run({ argument, values, access, environment });
    if (values.json) out(jsonLine({ command: name, ...fields }));
    else print(text, environment);
    return code;
  } catch (error) {
    const { message } = error as Error;
    const misused = error instanceof UsageError || error instanceof TypeError || error instanceof RangeError;
    for (const line of layout(`redlock-edge: ${message}`.split("\n"), width)) warn(line);
    if (misused) warn(`Try: redlock-edge ${command ? `${name} ` : ""}--help`);
    else if (rest.includes("--json")) {
      const code = isRedlockError(error) ? error.code : "FAILED";
      out(jsonLine({ command: name, error: { code, message } }));
    }
    return misused ? exitCode.usage : exitCode.failed;
  } finally {
    for (const { close } of access?.places ?? []) close?.();
  }
}

function print(text: Text, { out, width }: Environment, most: number = Infinity): ExitCode {
  for (const line of layout(text, Math.min(width, most))) out(line);
  return exitCode.done;
}

/** @throws UsageError if a word is missing, or one too many */
function argumentOf({ usage }: Command, { key }: Values, words: readonly string[]): string {
  const takesName = usage.startsWith("<resource>") && key === undefined;
  const [argument = "", extra] = takesName ? words : ["", ...words];
  if (usage && !key && argument === "") throw new UsageError(`it needs ${usage.replace("|", " or ")}`);
  if (extra !== undefined) throw new UsageError(`unexpected argument '${extra}'`);
  return argument;
}

/** The options that a command takes. */
const optionsOf = (command: Command): OptionName[] => [...command.options, ...commonOptions];

const endpoints =
  "Endpoints are read from the environment, or with --read-env from a file such as .dev.vars: UPSTASH_REDIS_REST_URL and UPSTASH_REDIS_REST_TOKEN, or REDIS_URL (redis:// or rediss://), which needs ioredis or redis in your project. Number several databases: REDIS_URL_1, REDIS_URL_2, … Use the same endpoints as your program, because other endpoints have another quorum.";

const codes =
  "Exit codes: 0 done, or there is something, and every endpoint is well; 1 failed, or too few endpoints answered to know; 2 the command line or a variable is wrong, and nothing was changed; 3 there is nothing; 4 you answered no, or a run of the key is under way.";

function helpOfAll(): Text {
  return [
    "Usage: redlock-edge <command> [options]",
    "",
    ...Object.entries(commands).map(([name, { summary }]) => [`  ${name}`, summary]),
    ["  <command> --help", "the options of a command"],
    ["  --version", "the version"],
    "",
    endpoints,
    "",
    codes,
  ];
}

function helpOf(name: string, command: Command): Text {
  const { usage, text } = command;
  return [
    `Usage: redlock-edge ${name}${usage && ` ${usage}`} [options]`,
    "",
    text,
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
