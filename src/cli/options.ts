import { checkInteger, nearest } from "../check/check.ts";
import { nameHere } from "../check/foreign-options.ts";
import { checkDialect, type Dialect } from "../endpoints/endpoint.ts";
import { kindsOf } from "../sync/force-release.ts";
import type { SynchronizerKind } from "../sync/index.ts";
import { UsageError } from "./environment.ts";

// The options of all commands, one row each. Parsing, help and "did you mean" come from these tables.

/** One option. */
export interface Option<Value> {
  /** The name of its value. Undefined: it has none. */
  readonly takes?: string;
  /** Whether it may be given several times. */
  readonly isList?: boolean;
  readonly doc: string;
  readonly default: Value;
  /** Its value. Throws the error of a wrong argument. */
  readonly check?: (name: string, text: string) => Value;
  /** What other programs call it. */
  readonly foreign?: string;
}

type Text = Option<string | undefined>;

const flag = (doc: string, foreign = ""): Option<boolean> => ({ doc, default: false, foreign });
const text = (takes: string, doc: string, foreign = ""): Text => ({
  takes,
  doc,
  default: undefined,
  foreign,
});
const integer = (doc: string, usual: number, [min, max]: readonly [number, number], takes = "<ms>") => ({
  takes,
  doc,
  default: usual,
  check(name: string, given: string) {
    if (!/^\d+$/.test(given)) throw new UsageError(`${name} takes a whole number, not '${given}'`);
    return checkInteger(name, Number(given), min, max);
  },
});

/** The kinds of synchronizers, as they are imported. */
const kinds = Object.keys(kindsOf);

/** Options that say which key is meant. */
const keyed = {
  key: text("<key>", "the idempotency key", "id idempotency-key k"),
  scope: {
    takes: "<name>",
    isList: true,
    doc: "the scope of the key; repeat it if the scope is a list",
    default: [],
  } as Option<readonly string[]>,
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
};

/** Options of all commands: which endpoints are meant, and how to ask them. */
const common = {
  "read-env": text(
    "<file>",
    "read the variables from this file, e.g. .dev.vars",
    "dotenv env env-file envfile file",
  ),
  prefix: {
    takes: "<prefix>",
    doc: "the `prefix` of your program's client",
    default: "redlock",
    check(name: string, given: string) {
      if (!/^[^{}]+$/.test(given)) throw new UsageError(`${name} has at least one character, and no braces`);
      return given;
    },
    foreign: "key-prefix n p",
  } as Option<string>,
  dialect: {
    takes: "<name>",
    doc: "upstash, redis-8.4 or redis, for all endpoints (upstash for hosts of upstash.io, else redis)",
    default: undefined,
    check: (name, given) => checkDialect(name, given as Dialect),
  } as Option<Dialect | undefined>,
  "base-path": text("<path>", "the `basePath` of your program's endpoints"),
  "allow-insecure": flag("the `allowInsecure` of your program's endpoints: send tokens over http://"),
  timeout: integer("how long to wait for an endpoint", 5_000, [100, 60_000]),
  json: flag("print JSON, one object per line"),
  help: flag("print this text"),
};

/** All options. */
export const options = {
  ...keyed,
  kind: {
    takes: "<kind>",
    doc: `a synchronizer instead of a lock: ${kinds.join(", ")}`,
    default: undefined,
    check: checkKind,
    foreign: "type",
  } as Option<SynchronizerKind | undefined>,
  limit: integer("how many keys of each database to walk over", 100_000, [1, 1e9], "<keys>"),
  yes: flag("do not ask", "f force y"),
  conformance: flag(
    "also ask each server for everything that the library needs, and look at what it has stored. About 65 requests per endpoint, with values of up to 1 MB",
  ),
  ...common,
};

export type OptionName = keyof typeof options;

/** The values of all options, even of those that were not given. */
export type Values = { readonly [Name in OptionName]: (typeof options)[Name]["default"] };

export const keyOptions = Object.keys(keyed) as (keyof typeof keyed)[];
export const commonOptions = Object.keys(common) as (keyof typeof common)[];

/** The kind that a word names, in any case, and with or without dashes: `semaphore`, `read-write-lock`. */
function checkKind(name: string, given: string): SynchronizerKind {
  const plain = given.toLowerCase().replaceAll("-", "");
  const found = kinds.find((kind) => kind.toLowerCase() === plain);
  if (found) return found as SynchronizerKind;
  throw new UsageError(`${name} is one of ${kinds.join(", ")}, not '${given}'${didYouMean(given, kinds)}`);
}

/** The option that was probably meant, or undefined if none is near. */
export function optionNear(given: string, names: readonly OptionName[]): OptionName | undefined {
  const translated = names.find((name) => (options[name] as Text).foreign?.split(" ").includes(given));
  return translated ?? ((nameHere(given, names) ?? nearest(given, names)) as OptionName | undefined);
}

/** The end of an error about an unknown name. */
export function didYouMean(given: string, names: readonly string[]): string {
  const near = nearest(given, names);
  return near === undefined ? "" : `; did you mean ${near}?`;
}
