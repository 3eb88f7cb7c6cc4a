import type { FaultRule } from "../faults/faults.ts";
import type { StartOptions } from "../rest/start.ts";
import { dialectOption, integer, UsageError, type Values as ValuesOf } from "./line.ts";

/** What the command line asks for. */
export interface CommandRequest {
  readonly start: StartOptions;
  /** A file to write the variables into, as `KEY="value"` lines; for example `.dev.vars` for wrangler. */
  readonly writeEnv: string | undefined;
  /** Faults to start with. Endpoints count from 1. */
  readonly faults: readonly { readonly endpoint: number; readonly rule: FaultRule }[];
  /** The port of the page, 0 for a free one; undefined: no page. */
  readonly pagePort: number | undefined;
  /** Whether every command is printed. */
  readonly log: boolean;
}

/** The text of `--help`. */
export const help = `Usage: redis-rest-local [options]

Starts independent local endpoints that speak Upstash's REST protocol, and prints the variables that name them.
They run until Ctrl-C.

  npx redis-rest-local --count 3 --write-env .dev.vars

  --count <n>          how many endpoints (3)
  --engine <name>      auto, redis (a redis-server process each) or embedded: only what redlock-edge sends (auto)
  --dialect <name>     the commands that they have: upstash, redis-8.4 or redis (upstash)
  --redis <url>        a running Redis instead, once per endpoint: redis://host:port
  --host <address>     address to listen on (127.0.0.1)
  --port <n>           port of the first endpoint, the others count up (free ports)
  --token <token>      token for all endpoints (random)
  --write-env <file>   write the variables there as well, e.g. .dev.vars; its owner only can read it
  --log                print every command and what it would be billed
  --faults             serve /_faults, to set faults over HTTP from this machine
  --page-port <n>      port of the page that shows the endpoints (a free port)
  --no-page            without that page

Faults to begin with; <n> is an endpoint, <p> the share of requests that is hit (1):
  --down <n>[=<p>]           breaks the connection
  --drop-request <n>[=<p>]   the request is lost
  --drop-reply <n>[=<p>]     the request is executed, the reply is lost
  --reorder <n>[=<p>]        the next request overtakes it
  --duplicate <n>[=<p>]      executed twice
  --delay <n>=<ms>           waits before it is executed; also <n>=<least>-<most>
  --delay-reply <n>=<ms>     waits before the reply
  --status <n>=<status>      answers with that HTTP status, e.g. 429 or 503

Faults of streams (/subscribe) and of their messages:
  --cut-stream <n>=<ms>         ends the stream after that time
  --silent-stream <n>[=<p>]     confirms, and then has no message
  --drop-message <n>[=<p>]      the message is lost
  --duplicate-message <n>[=<p>] arrives twice
  --delay-message <n>=<ms>      arrives late

  --help               this text
  --version            the version
`;

const shares = [
  "down",
  "drop-request",
  "drop-reply",
  "reorder",
  "duplicate",
  "silent-stream",
  "drop-message",
  "duplicate-message",
] as const;
const delays = ["delay", "delay-reply", "cut-stream", "delay-message"] as const;

/** The options, as `parseArgs` takes them. */
export const commandOptions = {
  count: { type: "string" },
  engine: { type: "string" },
  dialect: { type: "string" },
  redis: { type: "string", multiple: true },
  host: { type: "string" },
  port: { type: "string" },
  token: { type: "string" },
  "write-env": { type: "string" },
  log: { type: "boolean" },
  faults: { type: "boolean" },
  "page-port": { type: "string" },
  "no-page": { type: "boolean" },
  down: { type: "string", multiple: true },
  "drop-request": { type: "string", multiple: true },
  "drop-reply": { type: "string", multiple: true },
  reorder: { type: "string", multiple: true },
  duplicate: { type: "string", multiple: true },
  delay: { type: "string", multiple: true },
  "delay-reply": { type: "string", multiple: true },
  status: { type: "string", multiple: true },
  "cut-stream": { type: "string", multiple: true },
  "silent-stream": { type: "string", multiple: true },
  "drop-message": { type: "string", multiple: true },
  "duplicate-message": { type: "string", multiple: true },
  "delay-message": { type: "string", multiple: true },
  help: { type: "boolean", short: "h" },
  version: { type: "boolean", short: "v" },
} as const;

type Values = ValuesOf<typeof commandOptions>;

/**
 * What a command line asks for. Ranges of values are checked where they are used.
 *
 * @throws UsageError when it is not valid
 */
export function commandRequest(values: Values): CommandRequest {
  return {
    start: startOptions(values),
    writeEnv: values["write-env"],
    faults: startingFaults(values),
    pagePort: pagePort(values),
    log: values.log ?? false,
  };
}

function pagePort({ "page-port": port = "0", "no-page": none = false }: Values): number | undefined {
  const chosen = integer("--page-port", port);
  if (chosen > 65_535) throw new UsageError(`--page-port is 0 … 65535, not ${port}`);
  return none ? undefined : chosen;
}

function startOptions(values: Values): StartOptions {
  const { count, engine, redis, host, port, token, faults } = values;
  if (engine !== undefined && engine !== "auto" && engine !== "redis" && engine !== "embedded") {
    throw new UsageError(`--engine is auto, redis or embedded, not '${engine}'`);
  }
  const dialect = dialectOption(values.dialect);
  return {
    ...(count !== undefined && { count: integer("--count", count) }),
    ...(engine !== undefined && { engine }),
    ...(dialect !== undefined && { dialect }),
    ...(redis && { redis }),
    ...(host !== undefined && { host }),
    ...(port !== undefined && { port: integer("--port", port) }),
    ...(token !== undefined && { token }),
    ...(faults && { faultsApi: true }),
  };
}

function startingFaults(values: Values): CommandRequest["faults"] {
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

function number(option: string, value: string): number {
  if (!/^\d+(?:\.\d+)?$/.test(value)) throw new UsageError(`${option} takes a number, not '${value}'`);
  return Number(value);
}
