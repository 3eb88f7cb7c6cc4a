import { type ParseArgsConfig, parseArgs } from "node:util";
import { checkInteger } from "../check/check.ts";
import { checkDialect, type Dialect } from "../endpoints/endpoint.ts";
import { kindsOf } from "../sync/force-release.ts";
import type { SynchronizerKind } from "../sync/index.ts";
import { UsageError } from "./environment.ts";

// The options of all commands, one row each. Parsing and help come from these tables.

/** An option as Node parses it, and as `--help` shows it. */
export type Option = NonNullable<ParseArgsConfig["options"]>[string] & {
  /** The name of its value. Undefined: it has none. */
  readonly takes?: string;
  readonly doc: string;
};
type Options = Readonly<Record<string, Option>>;

const flag = (doc: string) => ({ type: "boolean", doc }) as const;
const text = (takes: string, doc: string) => ({ type: "string", takes, doc }) as const;

/** Options that say which key is meant. */
const keyed = {
  key: text("<key>", "the idempotency key"),
  scope: { ...text("<name>", "its scope; repeat it for a list"), multiple: true, default: [] as string[] },
  "scope-list": flag("the scope is a list, even though it has only one name"),
  http: flag("the key of a request, by withIdempotency() or idempotent(), not of run()"),
  flight: flag("the key of a singleFlight()"),
  webhook: text("<sender>", "the id of a delivery, for example from stripe; it needs --secret-env"),
  handler: text("<name>", "with --http or --webhook: the option `handler` of your route, or its pattern"),
  "secret-env": text("<name>", "the variable with the webhook's secret: a tag of it is in the scope"),
} as const satisfies Options;

/** Options of all commands: which endpoints are meant, and how to ask them. */
const common = {
  "read-env": text("<file>", "read the variables from this file, for example .dev.vars"),
  prefix: { ...text("<prefix>", "the `prefix` of your program's client"), default: "redlock" },
  dialect: text("<name>", "upstash, redis-8.4 or redis (upstash for hosts of upstash.io, else redis)"),
  "base-path": text("<path>", "the `basePath` of your program's endpoints"),
  "allow-insecure": flag("the `allowInsecure` of your program's endpoints: send tokens over http://"),
  timeout: { ...text("<ms>", "how long to wait for an endpoint"), default: "5000" },
  json: flag("print JSON, one object per line"),
  help: { ...flag("print this text"), short: "h" },
} as const satisfies Options;

/** The kinds of synchronizers, as they are imported. */
const kinds = Object.keys(kindsOf) as SynchronizerKind[];

/** All options. */
export const options = {
  ...keyed,
  kind: text("<kind>", `a synchronizer instead of a lock: ${kinds.join(", ")}`),
  limit: { ...text("<keys>", "how many keys of each database to walk over"), default: "100000" },
  yes: flag("do not ask"),
  conformance: flag("also ask for all that the library needs of a server, with a value of 1 MB"),
  ...common,
} as const satisfies Options;

export type OptionName = keyof typeof options;
export const keyOptions = Object.keys(keyed) as (keyof typeof keyed)[];
export const commonOptions = Object.keys(common) as (keyof typeof common)[];

/** The values of all options, even of those that were not given. */
export type Values = ReturnType<typeof checked>;

/**
 * The words of a command line, and the values of its options.
 *
 * @param own the options that the command takes
 * @throws an error with the mistake
 */
export function parseLine(args: readonly string[], own: readonly OptionName[]) {
  const known = Object.fromEntries(own.map((name) => [name, options[name]])) as typeof options;
  const { values, positionals } = parseArgs({ args: [...args], options: known, allowPositionals: true });
  return { values: checked({ ...defaults, ...values }), positionals };
}

const defaults = parseArgs({ args: [], options }).values;

/** @throws an error with the name of the option that has a wrong value */
function checked(given: typeof defaults) {
  const { prefix, dialect, kind } = given;
  if (!/^[^{}]+$/.test(prefix)) throw new UsageError("--prefix has at least one character, and no braces");
  return {
    ...given,
    timeout: checkInteger("--timeout", Number(given.timeout), 100, 60_000),
    limit: checkInteger("--limit", Number(given.limit), 1, 1e9),
    dialect: dialect === undefined ? dialect : checkDialect("--dialect", dialect as Dialect),
    kind: kind === undefined ? kind : checkKind(kind),
  };
}

/** The kind that a word names, in any case, and with or without dashes: `semaphore`, `read-write-lock`. */
function checkKind(given: string): SynchronizerKind {
  const plain = given.toLowerCase().replaceAll("-", "");
  const found = kinds.find((kind) => kind.toLowerCase() === plain);
  if (found) return found;
  throw new UsageError(`--kind is one of ${kinds.join(", ")}, not '${given}'`);
}
