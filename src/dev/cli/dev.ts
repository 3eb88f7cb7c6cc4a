import type { LoggedCommand } from "../command-log.ts";
import { isLoopback } from "../http/faults-api.ts";
import type { DevPage } from "../page/server.ts";
import { type DevEndpoints, startEndpoints } from "../start.ts";
import {
  type Command,
  type CommandEnvironment,
  defineCommand,
  exitCode,
  type Line,
  UsageError,
} from "./command.ts";
import { type DevRequest, devHelp, devOptions, devRequest } from "./dev-options.ts";
import { isUnignored, tokenBefore, writeVariables } from "./env-file.ts";
import { startError } from "./start-error.ts";
import { counted, printable } from "./text.ts";

/** `redlock-edge dev`: local endpoints, until it is stopped. */
export const devCommand: Command = defineCommand({
  name: "dev",
  summary: "starts local endpoints to develop and test against",
  help: devHelp,
  options: devOptions,
  async run(line: Line<typeof devOptions>, environment) {
    await runEndpoints(devRequest(line), environment);
    return exitCode.done;
  },
});

async function runEndpoints(request: DevRequest, environment: CommandEnvironment): Promise<void> {
  const { out, warn, stop } = environment;
  const onLog = (entry: LoggedCommand & { endpoint: string }) => out(logLine(entry));
  const token = request.start.token ?? (request.writeEnv && (await tokenBefore(request.writeEnv)));
  const start = { ...request.start, ...(token && { token }), ...(request.log && { onLog }) };
  const local = await startEndpoints(start).catch((error) => {
    throw startError(error, "--port");
  });
  let page: DevPage | undefined;
  try {
    for (const { endpoint, rule } of request.faults) {
      const chosen = local.endpoints[endpoint - 1];
      if (!chosen) throw new UsageError(`--${rule.fault}: there is no endpoint ${endpoint}`);
      chosen.faults.add(rule);
    }
    const variables = Object.entries(local.env());
    // Written first: the output says that it is.
    if (request.writeEnv !== undefined) await writeVariables(request.writeEnv, variables);
    page = await pageOf(local, request, environment);
    for (const line of announcement(local, request.writeEnv, page)) out(line);
    for (const [name, value] of variables) out(`export ${name}="${value}"`);
    for (const text of await dangers(request)) warn(`redlock-edge: ${text}`);
    await aborted(stop);
  } finally {
    await page?.close();
    await local.close();
  }
}

/** Who else may get the tokens, or use them. */
async function dangers({ writeEnv, start: { host } }: DevRequest): Promise<string[]> {
  const reached = host !== undefined && !isLoopback(host);
  const committed = writeEnv !== undefined && (await isUnignored(writeEnv));
  return [
    ...(reached
      ? [`${host} is not loopback: everyone who reaches this machine and has the token can connect`]
      : []),
    ...(committed ? [printable(`git would commit ${writeEnv} with its tokens: add it to .gitignore`)] : []),
  ];
}

async function pageOf(
  local: DevEndpoints,
  { pagePort: port }: DevRequest,
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
  { engine, endpoints }: DevEndpoints,
  file: string | undefined,
  page: DevPage | undefined,
): string[] {
  const behind = engine === "redis" ? "Redis" : "the embedded engine";
  const written = file === undefined || /^[\w@%+=:,./-]+$/.test(file) ? file : "FILE";
  const [they, them] = endpoints.length === 1 ? ["It runs", "it"] : ["They run", "them"];
  return [
    `# ${counted(endpoints.length, "endpoint")} in front of ${behind}. ${they} until Ctrl-C in this terminal.`,
    ...endpoints.map(
      ({ name, url, redisUrl }) => `# ${name}: ${url}${redisUrl ? ` with ${hidePassword(redisUrl)}` : ""}`,
    ),
    `# read-only token: ${endpoints[0]!.readOnlyToken}`,
    ...(page ? [`# What happens here, in a browser on this machine: ${page.url}`] : []),
    "#",
    ...(written === undefined
      ? [
          `# Your program finds ${them} by the variables below, with endpointsFromEnv.`,
          "# Next: paste all of this into another terminal and start your program there.",
          "# To get a file instead: redlock-edge dev --write-env .dev.vars",
          "# To see that all is well: npx redlock-edge doctor",
        ]
      : [
          `# Your program finds ${them} by the variables below, with endpointsFromEnv. They are in ${written} as well.`,
          `# Next, in another terminal, for example: node --env-file=${written} app.mjs`,
          "# Wrangler reads .dev.vars by itself.",
          `# To see that all is well: npx redlock-edge doctor --read-env ${written}`,
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
