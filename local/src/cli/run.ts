import { once } from "node:events";
import { printable } from "../../../src/cli/text.ts";
import type { DevPage } from "../page/server.ts";
import type { LoggedCommand } from "../rest/command-log.ts";
import { type LocalEndpoints, type StartOptions, start } from "../rest/start.ts";
import { isLoopback, tokenBefore, writeVariables } from "./env-file.ts";
import { help, integer, type Line, parseLine, UsageError } from "./options.ts";

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
    const line = parseLine(args);
    if (line.help) out(help);
    else if (line.version) out(await environment.version());
    else await runEndpoints(line, environment);
    return 0;
  } catch (error) {
    warn(printable(`redis-rest-local: ${messageOf(error as NodeJS.ErrnoException)}`));
    const isMisuse = error instanceof UsageError || error instanceof TypeError || error instanceof RangeError;
    if (isMisuse) warn("Try: redis-rest-local --help");
    return isMisuse ? 2 : 1;
  }
}

const messageOf = ({ code, message }: NodeJS.ErrnoException) =>
  code === "EADDRINUSE"
    ? `${message}, perhaps by another redis-rest-local: stop it, or choose another --port or --page-port`
    : message;

async function runEndpoints(line: Line, environment: CommandEnvironment): Promise<void> {
  const { out, warn, stop } = environment;
  const { "write-env": file, "page-port": pagePort = "0", host } = line;
  const downs = line.down?.map((number) => integer("--down", number)) ?? [];
  const port = integer("--page-port", pagePort, 65_535);
  const token = line.token ?? (file && (await tokenBefore(file)));
  const local = await start(startOptions({ ...line, ...(token && { token }) }, out));
  let page: DevPage | undefined;
  try {
    for (const number of downs) {
      const endpoint = local.endpoints[number - 1];
      if (!endpoint) throw new UsageError(`--down: there is no endpoint ${number}`);
      endpoint.faults.add({ fault: "down" });
    }
    const variables = Object.entries(local.env());
    // Written first: the output says that it is.
    if (file !== undefined) await writeVariables(file, variables);
    if (!line["no-page"] && environment.pageScript) {
      const { openPage } = await import("../page/server.ts");
      page = await openPage(local, { port, script: environment.pageScript });
    }
    for (const each of announcement(local, file, page)) out(each);
    for (const [name, value] of variables) out(`export ${name}="${value}"`);
    if (host !== undefined && !isLoopback(host)) {
      warn(
        `redis-rest-local: ${host} is not loopback: everyone who reaches this machine and has the token can connect`,
      );
    }
    if (!stop.aborted) await once(stop, "abort");
  } finally {
    await page?.close();
    await local.close();
  }
}

/** What `start` checks itself is passed on as it is. */
function startOptions(line: Line, out: CommandEnvironment["out"]): StartOptions {
  const { count, port, engine, dialect, redis, host, token, log } = line;
  return {
    keepsAlive: true,
    count: count && integer("--count", count),
    port: port && integer("--port", port),
    onLog: log && ((entry: LoggedCommand & { endpoint: string }) => out(logLine(entry))),
    ...{ engine, dialect, redis, host, token },
  } as StartOptions;
}

// Comments, so that all output up to the log can be pasted into a shell. They have none of its special characters: zsh
// does not know comments at its prompt, and would take a quote or a `>` in them for its own.
function announcement(
  { engine, endpoints }: LocalEndpoints,
  file: string | undefined,
  page: DevPage | undefined,
): string[] {
  const behind = engine === "redis" ? "Redis" : "the embedded engine";
  const { length } = endpoints;
  return [
    `# ${length} endpoint${length === 1 ? "" : "s"} in front of ${behind}, until Ctrl-C in this terminal.`,
    ...endpoints.map(
      ({ name, url, redisUrl }) =>
        `# ${name}: ${url}${redisUrl ? ` with ${redisUrl.replace(/\/\/.*@/, "//")}` : ""}`,
    ),
    `# read-only token: ${endpoints[0].readOnlyToken}`,
    ...(page ? [`# What happens here, in a browser on this machine: ${page.url}`] : []),
    "#",
    ...(file === undefined
      ? [
          "# Your program finds the endpoints by the variables below.",
          "# Next: paste all of this into another terminal and start your program there.",
          "# To get a file instead: redis-rest-local --write-env .dev.vars",
        ]
      : [
          `# Your program finds the endpoints by the variables below. They are in ${file} as well.`,
          `# Next, in another terminal, for example: node --env-file=${file} app.mjs`,
          "# Wrangler reads .dev.vars by itself.",
        ]),
    "#",
  ];
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
