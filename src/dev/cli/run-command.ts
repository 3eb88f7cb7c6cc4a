import { readFile, writeFile } from "node:fs/promises";
import type { LoggedCommand } from "../command-log.ts";
import { isLoopback } from "../http/faults-api.ts";
import { type DevEndpoints, startEndpoints } from "../start.ts";
import { type DevCommand, help, parseCommandLine, UsageError } from "./options.ts";

/** The environment of a run of the command. */
export interface CommandEnvironment {
  /** Prints a line to standard output. */
  out(line: string): void;
  /** Prints a line to standard error. */
  warn(line: string): void;
  /** Aborts when the command should stop its endpoints and exit. */
  readonly stop: AbortSignal;
  /** The package's version. */
  version(): Promise<string>;
}

/**
 * The `redlock-edge` command. Resolves with the exit code: 0 after it was stopped, 1 when the endpoints could not be
 * started or a file not be written, 2 for a command line that is not valid.
 */
export async function runCommand(
  args: readonly string[],
  environment: CommandEnvironment,
): Promise<0 | 1 | 2> {
  const { out, warn } = environment;
  try {
    const command = parseCommandLine(args);
    if (command === "help") out(help.trimEnd());
    else if (command === "version") out(await environment.version());
    else await runEndpoints(command, environment);
    return 0;
  } catch (error) {
    warn(`redlock-edge: ${(error as Error).message}`);
    const misused = error instanceof UsageError || error instanceof TypeError || error instanceof RangeError;
    if (misused) warn("Try: redlock-edge dev --help");
    return misused ? 2 : 1;
  }
}

async function runEndpoints(command: DevCommand, { out, warn, stop }: CommandEnvironment): Promise<void> {
  const onLog = (entry: LoggedCommand & { endpoint: string }) => out(logLine(entry));
  const local = await startEndpoints({ ...command.start, ...(command.log && { onLog }) });
  try {
    for (const { endpoint, rule } of command.faults) {
      const chosen = local.endpoints[endpoint - 1];
      if (!chosen) throw new UsageError(`--${rule.fault}: there is no endpoint ${endpoint}`);
      chosen.faults.add(rule);
    }
    const variables = Object.entries(local.env());
    for (const line of announcement(local)) out(line);
    for (const [name, value] of variables) out(`export ${name}="${value}"`);
    if (command.envFile !== undefined) await writeVariables(command.envFile, variables);
    const { host } = command.start;
    if (host !== undefined && !isLoopback(host)) {
      warn(
        `redlock-edge: ${host} is not loopback: everyone who reaches this machine and has the token can connect`,
      );
    }
    await aborted(stop);
  } finally {
    await local.close();
  }
}

// Shell comments, so that all output up to the log can be pasted into a shell.
function announcement({ engine, endpoints }: DevEndpoints): string[] {
  const behind = engine === "redis" ? "Redis" : "the embedded engine";
  return [
    `# ${endpoints.length} endpoint${endpoints.length === 1 ? "" : "s"} in front of ${behind}; Ctrl-C stops them`,
    ...endpoints.map(
      ({ name, url, redisUrl }) => `# ${name}: ${url}${redisUrl ? ` -> ${hidePassword(redisUrl)}` : ""}`,
    ),
    `# read-only token: ${endpoints[0]!.readOnlyToken}`,
  ];
}

function hidePassword(address: string): string {
  const { protocol, host } = new URL(address);
  return `${protocol}//${host}`;
}

function logLine({
  endpoint,
  command,
  billed,
  ms,
  outcome,
  error,
}: LoggedCommand & { endpoint: string }): string {
  const words = command.map((word, index) => (index === 0 ? shorten(word) : JSON.stringify(shorten(word))));
  const line = `${endpoint} billed=${billed} ${ms.toFixed(1)}ms ${outcome} ${words.join(" ")}`;
  return printable(error ? `${line} -> ${error}` : line);
}

/** Text as one line for a terminal: characters that could move the cursor, set colours or hide text are escaped. */
function printable(text: string): string {
  return text.replace(
    /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu,
    (character) => `\\u{${character.codePointAt(0)!.toString(16)}}`,
  );
}

function shorten(word: string): string {
  return word.length > 60 ? `${word.slice(0, 57)}...` : word;
}

/** Sets the variables in a file and keeps its other lines. */
async function writeVariables(
  path: string,
  variables: readonly (readonly [string, string])[],
): Promise<void> {
  const names = new Set(variables.map(([name]) => name));
  const kept = (await contentOf(path))
    .split("\n")
    .filter((line) => line !== "" && !names.has(line.split("=")[0]!.trim()));
  const lines = [...kept, ...variables.map(([name, value]) => `${name}="${value}"`)];
  // The file has tokens, so only its owner may read it.
  await writeFile(path, `${lines.join("\n")}\n`, { mode: 0o600 });
}

async function contentOf(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return "";
    throw error;
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
