import type { FaultKind, FaultRule } from "../faults/faults.ts";
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

/** What the value of an option of faults says behind the endpoint's number: a share, ms or an HTTP status. */
type Detail = "share" | "ms" | "status";

/** The faults to begin with, by their kind. */
const faultOptions: readonly (readonly [name: FaultKind, detail: Detail, about: string])[] = [
  ["down", "share", "breaks the connection"],
  ["drop-request", "share", "the request is lost"],
  ["drop-reply", "share", "the request is executed, the reply is lost"],
  ["reorder", "share", "the next request overtakes it"],
  ["duplicate", "share", "executed twice"],
  ["delay", "ms", "waits before it is executed; also <n>=<least>-<most>"],
  ["delay-reply", "ms", "waits before the reply"],
  ["status", "status", "answers with that HTTP status, e.g. 429 or 503"],
  ["cut-stream", "ms", "a stream (/subscribe) ends after that time"],
  ["silent-stream", "share", "a stream confirms, and then has no message"],
  ["drop-message", "share", "a message of a stream is lost"],
  ["duplicate-message", "share", "a message of a stream arrives twice"],
  ["delay-message", "ms", "a message of a stream arrives late"],
];

const values: Readonly<Record<Detail, string>> = {
  share: "<n>[=<p>]",
  ms: "<n>=<ms>",
  status: "<n>=<status>",
};

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
  --help               this text
  --version            the version

Faults to begin with; <n> is an endpoint, <p> the share of requests that is hit (1):

${faultOptions.map(([name, detail, about]) => `  ${`--${name} ${values[detail]}`.padEnd(31)}${about}`).join("\n")}
`;

const text = { type: "string" } as const;
const flag = { type: "boolean" } as const;
const list = { type: "string", multiple: true } as const;

/** The options, as `parseArgs` takes them. */
export const commandOptions = {
  count: text,
  engine: text,
  dialect: text,
  redis: list,
  host: text,
  port: text,
  token: text,
  "write-env": text,
  log: flag,
  faults: flag,
  "page-port": text,
  "no-page": flag,
  ...(Object.fromEntries(faultOptions.map(([name]) => [name, list])) as Record<FaultKind, typeof list>),
  help: { ...flag, short: "h" },
  version: { ...flag, short: "v" },
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
  const given = {
    count: count === undefined ? undefined : integer("--count", count),
    engine,
    dialect,
    redis,
    host,
    port: port === undefined ? undefined : integer("--port", port),
    token,
    faultsApi: faults,
  };
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
}

function startingFaults(given: Values): CommandRequest["faults"] {
  return faultOptions.flatMap(([fault, detail]) =>
    (given[fault] ?? []).map((value) => {
      const [number = "", rest] = value.split("=", 2);
      return {
        endpoint: integer(`--${fault}`, number),
        rule: { fault, ...rules[detail](`--${fault}`, rest) },
      };
    }),
  );
}

const rules: Readonly<
  Record<Detail, (option: string, value: string | undefined) => Omit<FaultRule, "fault">>
> = {
  share: (option, value = "1") => ({ probability: number(option, value) }),
  ms: (option, value) => ({ ms: duration(option, value) }),
  status: (option, value = "500") => ({ status: integer(option, value) }),
};

function duration(option: string, value: string | undefined): number | [number, number] {
  if (value === undefined) throw new UsageError(`${option} needs ms: ${option} 2=1000`);
  const range = /^(\d+)-(\d+)$/.exec(value);
  return range ? [Number(range[1]), Number(range[2])] : number(option, value);
}

function number(option: string, value: string): number {
  if (!/^\d+(?:\.\d+)?$/.test(value)) throw new UsageError(`${option} takes a number, not '${value}'`);
  return Number(value);
}
