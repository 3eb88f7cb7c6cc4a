import { nearest } from "../check.ts";
import { isRedlockError } from "../index.ts";
import { type Command, type CommandEnvironment, type ExitCode, exitCode, UsageError } from "./command.ts";
import { deadCommand } from "./dead.ts";
import { doctorCommand } from "./doctor.ts";
import { forgetCommand } from "./forget.ts";
import { freeCommand } from "./free.ts";
import { inspectCommand } from "./inspect.ts";
import { jsonLine, printable } from "./text.ts";
import { watchCommand } from "./watch.ts";

const commands: readonly Command[] = [
  doctorCommand,
  inspectCommand,
  watchCommand,
  freeCommand,
  forgetCommand,
  deadCommand,
];

const help = `Usage: redlock-edge <command> [options]

${commands.map(({ name, summary }) => `  ${name.padEnd(10)}${summary}`).join("\n")}

  redlock-edge <command> --help    its options, with an example
  redlock-edge --version           the version

The commands look at the endpoints that UPSTASH_REDIS_REST_URL_1, UPSTASH_REDIS_REST_TOKEN_1, … name, in the
environment or in a file: --read-env .dev.vars`;

/** The `redlock-edge` command. Resolves with the exit code. */
export async function runCommand(
  args: readonly string[],
  environment: CommandEnvironment,
): Promise<ExitCode> {
  const { out, warn } = environment;
  const [first, ...others] = args;
  // `help inspect` is `inspect --help`.
  const [name, ...rest] = first === "help" && others.length > 0 ? [...others, "--help"] : args;
  const command = commands.find((each) => each.name === name);
  try {
    if (name === "--help" || name === "-h" || name === "help") out(help);
    else if (name === "--version" || name === "-v") out(await environment.version());
    else if (!command) throw new UsageError(unknown(name));
    else if (asksForHelp(rest)) out(command.help.trimEnd());
    else return await command.run(rest, environment);
    return exitCode.done;
  } catch (error) {
    const { message, cause } = error as Error;
    const misused = error instanceof UsageError || error instanceof TypeError || error instanceof RangeError;
    warn(printable(`redlock-edge: ${message}`));
    if (misused) warn(`Try: redlock-edge ${command ? `${command.name} ` : ""}--help`);
    else if (rest.includes("--json")) {
      const known = [error, cause].find(isRedlockError);
      out(jsonLine({ command: name, error: { code: known?.code ?? "FAILED", message } }));
    }
    return misused ? exitCode.usage : exitCode.failed;
  }
}

function unknown(name: string | undefined): string {
  const names = commands.map((each) => each.name);
  if (name === undefined) return `a command is missing: ${names.join(", ")}`;
  const near = nearest(name, [...names, "--help", "--version"]);
  return `unknown command '${name}'${near ? `; did you mean ${near}?` : `, there are: ${names.join(", ")}`}`;
}

/** Whether the options contain `--help`; what follows `--` is not an option. */
function asksForHelp(args: readonly string[]): boolean {
  const end = args.indexOf("--");
  return args.slice(0, end < 0 ? args.length : end).some((word) => word === "--help" || word === "-h");
}
