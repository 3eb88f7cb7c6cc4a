import type { StartOptions } from "../rest/start.ts";
import { dialectOption, integer, UsageError, type Values as ValuesOf } from "./line.ts";

/** What the command line asks for. */
export interface CommandRequest {
  readonly start: StartOptions;
  /** A file to write the variables into, as `KEY="value"` lines; for example `.dev.vars` for wrangler. */
  readonly writeEnv: string | undefined;
  /** The endpoints that break every connection. They count from 1. */
  readonly down: readonly number[];
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
  --down <n>           endpoint n breaks every connection; other faults: on the page, or by --faults
  --faults             serve /_faults, to set faults over HTTP from this machine
  --page-port <n>      port of the page that shows the endpoints (a free port)
  --no-page            without that page
  --help               this text
  --version            the version
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
  down: list,
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
    down: (values.down ?? []).map((number) => integer("--down", number)),
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
