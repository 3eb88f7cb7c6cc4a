import { parseArgs } from "node:util";
import type { FaultRule } from "../../testing/faults.ts";
import type { StartOptions } from "../start.ts";

/** The options of `redlock-edge dev`. */
export interface DevCommand {
  readonly start: StartOptions;
  /** A file to write the variables into, as `KEY="value"` lines; for example `.dev.vars` for wrangler. */
  readonly envFile: string | undefined;
  /** Faults to start with. Endpoints count from 1. */
  readonly faults: readonly { readonly endpoint: number; readonly rule: FaultRule }[];
  /** Whether every command is printed. */
  readonly log: boolean;
}

/** A command line that is not valid. The message is one line. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** The text of `--help`. */
export const help = `Usage: redlock-edge dev [options]

Starts independent local endpoints that speak Upstash's REST protocol.

  --count <n>          how many endpoints (3)
  --engine <name>      auto, redis (a redis-server process each) or embedded (auto)
  --redis <url>        a running Redis instead, once per endpoint: redis://host:port
  --host <address>     address to listen on (127.0.0.1)
  --port <n>           port of the first endpoint, the others count up (free ports)
  --token <token>      token for all endpoints (random)
  --env-file <path>    write the variables there as well, e.g. .dev.vars
  --lua-time-limit <ms>  how long a script may run on the embedded engine (5000)
  --log                print every command and what it would be billed
  --faults             serve /_faults, to set faults over HTTP from this machine

Faults to begin with; <n> is an endpoint, <p> the share of requests that is hit (1):
  --down <n>[=<p>]           breaks the connection
  --drop-request <n>[=<p>]   the request is lost
  --drop-reply <n>[=<p>]     the request is executed, the reply is lost
  --reorder <n>[=<p>]        the next request overtakes it
  --duplicate <n>[=<p>]      executed twice
  --delay <n>=<ms>           waits before it is executed; also <n>=<least>-<most>
  --delay-reply <n>=<ms>     waits before the reply
  --status <n>=<status>      answers with that HTTP status, e.g. 429 or 503

  --help               this text
  --version            the version
`;

const shares = ["down", "drop-request", "drop-reply", "reorder", "duplicate"] as const;
const delays = ["delay", "delay-reply"] as const;

const options = {
  count: { type: "string" },
  engine: { type: "string" },
  redis: { type: "string", multiple: true },
  host: { type: "string" },
  port: { type: "string" },
  token: { type: "string" },
  "env-file": { type: "string" },
  "lua-time-limit": { type: "string" },
  log: { type: "boolean" },
  faults: { type: "boolean" },
  down: { type: "string", multiple: true },
  "drop-request": { type: "string", multiple: true },
  "drop-reply": { type: "string", multiple: true },
  reorder: { type: "string", multiple: true },
  duplicate: { type: "string", multiple: true },
  delay: { type: "string", multiple: true },
  "delay-reply": { type: "string", multiple: true },
  status: { type: "string", multiple: true },
  help: { type: "boolean", short: "h" },
  version: { type: "boolean", short: "v" },
} as const;

/**
 * Parses a command line. Ranges of values are checked where they are used.
 *
 * @throws UsageError when it is not valid
 */
export function parseCommandLine(args: readonly string[]): DevCommand | "help" | "version" {
  const { values, positionals } = parse(args);
  if (values.help) return "help";
  if (values.version) return "version";
  const [command, ...rest] = positionals;
  if (command === undefined) throw new UsageError("a command is missing: redlock-edge dev");
  if (command !== "dev")
    throw new UsageError(`unknown command '${command}', there is only: redlock-edge dev`);
  if (rest.length > 0) throw new UsageError(`unexpected argument '${rest[0]}'`);
  return {
    start: startOptions(values),
    envFile: values["env-file"],
    faults: startingFaults(values),
    log: values.log ?? false,
  };
}

type Values = ReturnType<typeof parse>["values"];

function startOptions(values: Values): StartOptions {
  const { count, engine, redis, host, port, token, faults } = values;
  if (engine !== undefined && engine !== "auto" && engine !== "redis" && engine !== "embedded") {
    throw new UsageError(`--engine is auto, redis or embedded, not '${engine}'`);
  }
  const luaTimeLimit = values["lua-time-limit"];
  return {
    ...(count !== undefined && { count: integer("--count", count) }),
    ...(engine !== undefined && { engine }),
    ...(redis && { redis }),
    ...(host !== undefined && { host }),
    ...(port !== undefined && { port: integer("--port", port) }),
    ...(token !== undefined && { token }),
    ...(luaTimeLimit !== undefined && { luaTimeLimit: integer("--lua-time-limit", luaTimeLimit) }),
    ...(faults && { faultsApi: true }),
  };
}

function startingFaults(values: Values): DevCommand["faults"] {
  const withProbability = shares.flatMap((fault) =>
    (values[fault] ?? []).map((value) => {
      const { endpoint, detail } = target(fault, value);
      const probability = detail === undefined ? 1 : number(`--${fault}`, detail);
      return { endpoint, rule: { fault, probability } };
    }),
  );
  const withDuration = delays.flatMap((fault) =>
    (values[fault] ?? []).map((value) => {
      const { endpoint, detail } = target(fault, value);
      return { endpoint, rule: { fault, ms: duration(`--${fault}`, detail) } };
    }),
  );
  const withStatus = (values.status ?? []).map((value) => {
    const { endpoint, detail = "500" } = target("status", value);
    return { endpoint, rule: { fault: "status" as const, status: integer("--status", detail) } };
  });
  return [...withProbability, ...withDuration, ...withStatus];
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true, strict: true });
  } catch (error) {
    // Node adds a long explanation; its first sentence is enough.
    throw new UsageError((error as Error).message.split(/\.\s|\n/)[0]!.replace(/\.$/, ""));
  }
}

/** Splits `<endpoint>[=<detail>]`. */
function target(option: string, value: string): { endpoint: number; detail: string | undefined } {
  const [first = "", detail] = value.split("=", 2);
  return { endpoint: integer(`--${option}`, first), detail };
}

function duration(option: string, value: string | undefined): number | [number, number] {
  if (value === undefined) throw new UsageError(`${option} needs ms: ${option} 2=1000`);
  const range = /^(\d+)-(\d+)$/.exec(value);
  return range ? [Number(range[1]), Number(range[2])] : number(option, value);
}

function integer(option: string, value: string): number {
  if (!/^\d+$/.test(value)) throw new UsageError(`${option} takes a whole number, not '${value}'`);
  return Number(value);
}

function number(option: string, value: string): number {
  if (!/^\d+(?:\.\d+)?$/.test(value)) throw new UsageError(`${option} takes a number, not '${value}'`);
  return Number(value);
}
