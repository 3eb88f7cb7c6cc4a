import { type ParseArgsConfig, parseArgs } from "node:util";
import { checkInteger, nearest } from "../check/check.ts";
import { nameHere } from "../check/foreign-options.ts";
import { checkDialect, type Dialect } from "../endpoints/endpoint.ts";
import { kindsOf } from "../sync/force-release.ts";
import type { SynchronizerKind } from "../sync/index.ts";
import { UsageError } from "./environment.ts";

// The options of all commands, one row each. Parsing, help and "did you mean" come from these tables.

/** An option as Node parses it, and as `--help` shows it. */
export type Option = NonNullable<ParseArgsConfig["options"]>[string] & {
  /** The name of its value. Undefined: it has none. */
  readonly takes?: string;
  readonly doc: string;
  /** What other programs call it. */
  readonly foreign?: string;
};
type Options = Readonly<Record<string, Option>>;

const flag = (doc: string) => ({ type: "boolean", doc }) as const;
const text = (takes: string, doc: string, foreign = "") => ({ type: "string", takes, doc, foreign }) as const;

/** Options that say which key is meant. */
const keyed = {
  key: text("<key>", "the idempotency key", "id idempotency-key k"),
  scope: {
    ...text("<name>", "the scope of the key; repeat it if the scope is a list"),
    multiple: true,
    default: [] as string[],
  },
  "scope-list": flag("the scope is a list, even though it has only one name"),
  http: flag("the key of a request, by withIdempotency() or idempotent(), not of run()"),
  flight: flag("the key of a singleFlight()"),
  webhook: text(
    "<sender>",
    "the id of a delivery, e.g. from stripe; needs --secret-env; --scope takes what follows in its scope",
    "provider",
  ),
  handler: text(
    "<name>",
    "with --http or --webhook: the option `handler` of your route, or else the pattern of the route, e.g. /webhooks/stripe. Some routes have none: docs/webhooks.md, Several handlers",
  ),
  "secret-env": text(
    "<name>",
    "the variable with the webhook's secret, because a tag of the secret is part of the scope",
    "secret",
  ),
} as const satisfies Options;

/** Options of all commands: which endpoints are meant, and how to ask them. */
const common = {
  "read-env": text(
    "<file>",
    "read the variables from this file, e.g. .dev.vars",
    "dotenv env env-file envfile file",
  ),
  prefix: {
    ...text("<prefix>", "the `prefix` of your program's client", "key-prefix n p"),
    default: "redlock",
  },
  dialect: text(
    "<name>",
    "upstash, redis-8.4 or redis, for all endpoints (upstash for hosts of upstash.io, else redis)",
  ),
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
  kind: text("<kind>", `a synchronizer instead of a lock: ${kinds.join(", ")}`, "type"),
  limit: { ...text("<keys>", "how many keys of each database to walk over"), default: "100000" },
  yes: { ...flag("do not ask"), foreign: "f force y" },
  conformance: flag(
    "also ask each server for everything that the library needs, and look at what it has stored. About 65 requests per endpoint, with values of up to 1 MB",
  ),
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
 * @throws UsageError with the mistake, and what was probably meant
 */
export function parseLine(args: readonly string[], own: readonly OptionName[]) {
  const known = Object.fromEntries(own.map((name) => [name, options[name]])) as typeof options;
  try {
    const { values, positionals } = parseArgs({ args: [...args], options: known, allowPositionals: true });
    return { values: checked({ ...defaults, ...values }), positionals };
  } catch (error) {
    const { code = "", message } = error as NodeJS.ErrnoException;
    if (!code.startsWith("ERR_PARSE_ARGS")) throw error;
    const [what, given = ""] = /^Unknown option '--?(.*?)'/.exec(message) ?? [];
    const near = what && optionNear(given, own);
    throw new UsageError(near ? `${what}; did you mean --${near}?` : message.replaceAll("\n", " "));
  }
}

const defaults = parseArgs({ args: [], options }).values;

/** @throws an error with the name of the option that has a wrong value */
function checked(given: typeof defaults) {
  const { prefix, dialect, kind } = given;
  if (!/^[^{}]+$/.test(prefix)) throw new UsageError("--prefix has at least one character, and no braces");
  return {
    ...given,
    timeout: integer("--timeout", given.timeout, 100, 60_000),
    limit: integer("--limit", given.limit, 1, 1e9),
    dialect: dialect === undefined ? dialect : checkDialect("--dialect", dialect as Dialect),
    kind: kind === undefined ? kind : checkKind(kind),
  };
}

function integer(name: string, given: string, min: number, max: number): number {
  if (!/^\d+$/.test(given)) throw new UsageError(`${name} takes a whole number, not '${given}'`);
  return checkInteger(name, Number(given), min, max);
}

/** The kind that a word names, in any case, and with or without dashes: `semaphore`, `read-write-lock`. */
function checkKind(given: string): SynchronizerKind {
  const plain = given.toLowerCase().replaceAll("-", "");
  const found = kinds.find((kind) => kind.toLowerCase() === plain);
  if (found) return found;
  throw new UsageError(`--kind is one of ${kinds.join(", ")}, not '${given}'${didYouMean(given, kinds)}`);
}

/** The option that was probably meant, or undefined if none is near. */
function optionNear(given: string, names: readonly OptionName[]): string | undefined {
  const translated = names.find((name) => (options[name] as Option).foreign?.split(" ").includes(given));
  return translated ?? nameHere(given, names) ?? nearest(given, names);
}

/** The end of an error about an unknown name. */
export function didYouMean(given: string, names: readonly string[]): string {
  const near = nearest(given, names);
  return near === undefined ? "" : `; did you mean ${near}?`;
}
