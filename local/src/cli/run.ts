import { printable } from "../../../src/cli/text.ts";
import type { DevPage } from "../page/server.ts";
import type { LoggedCommand } from "../rest/command-log.ts";
import { isLoopback } from "../rest/http/faults-api.ts";
import { type LocalEndpoints, start } from "../rest/start.ts";
import { tokenBefore, writeVariables } from "./env-file.ts";
import { parseLine, UsageError } from "./line.ts";
import { type CommandRequest, commandOptions, commandRequest, help } from "./options.ts";
import { startError } from "./start-error.ts";

/** What the command has of its surroundings. */
export interface CommandEnvironment {
  /** Prints a line to standard output. */
  out(line: string): void;
  /** Prints a line to standard error. */
  warn(line: string): void;
  /** Aborts when the command should stop and exit. */
  readonly stop: AbortSignal;
  /** The package's version. */
  version(): Promise<string>;
  /** The script of the page; undefined where it was not built. */
  readonly pageScript?: (() => Promise<string>) | undefined;
}

/** The `redis-rest-local` command: local endpoints, until it is stopped. Resolves with the exit code: 0, 1 or 2 for misuse. */
export async function runCommand(args: readonly string[], environment: CommandEnvironment): Promise<number> {
  const { out, warn } = environment;
  try {
    const line = parseLine(args, commandOptions);
    if (line.help) out(help.trimEnd());
    else if (line.version) out(await environment.version());
    else await runEndpoints(commandRequest(line), environment);
    return 0;
  } catch (error) {
    warn(printable(`redis-rest-local: ${(error as Error).message}`));
    const isMisuse = error instanceof UsageError || error instanceof TypeError || error instanceof RangeError;
    if (isMisuse) warn("Try: redis-rest-local --help");
    return isMisuse ? 2 : 1;
  }
}

async function runEndpoints(request: CommandRequest, environment: CommandEnvironment): Promise<void> {
  const { out, warn, stop } = environment;
  const onLog = (entry: LoggedCommand & { endpoint: string }) => out(logLine(entry));
  const token = request.start.token ?? (request.writeEnv && (await tokenBefore(request.writeEnv)));
  const options = {
    ...request.start,
    keepsAlive: true,
    ...(token && { token }),
    ...(request.log && { onLog }),
  };
  const local = await start(options).catch((error) => {
    throw startError(error, "--port");
  });
  let page: DevPage | undefined;
  try {
    for (const number of request.down) {
      const endpoint = local.endpoints[number - 1];
      if (!endpoint) throw new UsageError(`--down: there is no endpoint ${number}`);
      endpoint.faults.add({ fault: "down" });
    }
    const variables = Object.entries(local.env());
    // Written first: the output says that it is.
    if (request.writeEnv !== undefined) await writeVariables(request.writeEnv, variables);
    page = await pageOf(local, request, environment);
    for (const line of announcement(local, request.writeEnv, page)) out(line);
    for (const [name, value] of variables) out(`export ${name}="${value}"`);
    const { host } = request.start;
    if (host !== undefined && !isLoopback(host)) {
      warn(
        `redis-rest-local: ${host} is not loopback: everyone who reaches this machine and has the token can connect`,
      );
    }
    await aborted(stop);
  } finally {
    await page?.close();
    await local.close();
  }
}

async function pageOf(
  local: LocalEndpoints,
  { pagePort: port }: CommandRequest,
  { pageScript: script }: CommandEnvironment,
): Promise<DevPage | undefined> {
  if (port === undefined || !script) return undefined;
  // Only this command needs it: those that inspect and free locks start without it.
  const { openPage } = await import("../page/server.ts");
  return openPage(local, { port, script }).catch((error) => {
    throw startError(error, "--page-port");
  });
}

// Comments, so that all output up to the log can be pasted into a shell. They have none of its special characters: zsh
// does not know comments at its prompt, and would take a quote or a `>` in them for its own.
function announcement(
  { engine, endpoints }: LocalEndpoints,
  file: string | undefined,
  page: DevPage | undefined,
): string[] {
  const behind = engine === "redis" ? "Redis" : "the embedded engine";
  const written = file === undefined || /^[\w@%+=:,./-]+$/.test(file) ? file : "FILE";
  const [they, them] = endpoints.length === 1 ? ["It runs", "it"] : ["They run", "them"];
  return [
    `# ${endpoints.length} endpoint${endpoints.length === 1 ? "" : "s"} in front of ${behind}. ${they} until Ctrl-C in this terminal.`,
    ...endpoints.map(
      ({ name, url, redisUrl }) => `# ${name}: ${url}${redisUrl ? ` with ${hidePassword(redisUrl)}` : ""}`,
    ),
    `# read-only token: ${endpoints[0]!.readOnlyToken}`,
    ...(page ? [`# What happens here, in a browser on this machine: ${page.url}`] : []),
    "#",
    ...(written === undefined
      ? [
          `# Your program finds ${them} by the variables below.`,
          "# Next: paste all of this into another terminal and start your program there.",
          "# To get a file instead: redis-rest-local --write-env .dev.vars",
        ]
      : [
          `# Your program finds ${them} by the variables below. They are in ${written} as well.`,
          `# Next, in another terminal, for example: node --env-file=${written} app.mjs`,
          "# Wrangler reads .dev.vars by itself.",
        ]),
    "#",
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

function shorten(word: string): string {
  return word.length > 60 ? `${word.slice(0, 57)}...` : word;
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
