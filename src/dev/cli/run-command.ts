import { readFile, writeFile } from "node:fs/promises";
import type { LoggedCommand } from "../command-log.ts";
import { isLoopback } from "../http/faults-api.ts";
import { type DevEndpoints, startEndpoints } from "../start.ts";
import { type DevCommand, help, parseCommandLine, UsageError } from "./options.ts";

/** Where a run of the command writes, and what ends it. */
export interface Surroundings {
  out(line: string): void;
  warn(line: string): void;
  /** Aborts when the command should stop its endpoints and end. */
  readonly stop: AbortSignal;
  /** The package's version. */
  version(): Promise<string>;
}

/**
 * The `redlock-edge` command. Resolves with the exit code: 0, 1 when the endpoints could not be started, 2 for
 * a command line that it does not understand.
 */
export async function runCommand(args: readonly string[], surroundings: Surroundings): Promise<0 | 1 | 2> {
  const { out, warn } = surroundings;
  try {
    const command = parseCommandLine(args);
    if (command === "help") out(help.trimEnd());
    else if (command === "version") out(await surroundings.version());
    else await runEndpoints(command, surroundings);
    return 0;
  } catch (error) {
    warn(`redlock-edge: ${(error as Error).message}`);
    const misused = error instanceof UsageError || error instanceof TypeError || error instanceof RangeError;
    if (misused) warn("Try: redlock-edge dev --help");
    return misused ? 2 : 1;
  }
}

async function runEndpoints(command: DevCommand, { out, warn, stop }: Surroundings): Promise<void> {
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
        `redlock-edge: ${host} is not loopback: whoever reaches this machine and has the token can connect`,
      );
    }
    await aborted(stop);
  } finally {
    await local.close();
  }
}

// As comments, so that everything up to the log can be pasted into a shell.
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

/** Text as one line of a terminal: what could move the cursor, set colours or hide something becomes an escape. */
function printable(text: string): string {
  return text.replace(
    /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu,
    (character) => `\\u{${character.codePointAt(0)!.toString(16)}}`,
  );
}

function shorten(word: string): string {
  return word.length > 60 ? `${word.slice(0, 57)}...` : word;
}

/** Sets the variables in the file and leaves its other lines as they are. */
async function writeVariables(
  path: string,
  variables: readonly (readonly [string, string])[],
): Promise<void> {
  const names = new Set(variables.map(([name]) => name));
  const kept = (await contentOf(path))
    .split("\n")
    .filter((line) => line !== "" && !names.has(line.split("=")[0]!.trim()));
  const lines = [...kept, ...variables.map(([name, value]) => `${name}="${value}"`)];
  // It holds tokens: nobody else's to read.
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
