import { checkInteger, nearest } from "../check/check.ts";
import { nameHere } from "../check/foreign-options.ts";
import { checkDialect, type Dialect } from "../endpoints/endpoint.ts";
import { kindsOf } from "../sync/force-release.ts";
import type { SynchronizerKind } from "../sync/index.ts";
import { UsageError } from "./environment.ts";

// The options of all commands, one row each. Parsing, help and "did you mean" come from this table.

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
}

const flag = (doc: string): Option<boolean> => ({ doc, default: false });
const text = (takes: string, doc: string): Option<string | undefined> => ({ takes, doc, default: undefined });
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

/** The values of all options, even of those that were not given. */
export interface Values {
  readonly key: string | undefined;
  readonly scope: readonly string[];
  readonly "scope-list": boolean;
  readonly http: boolean;
  readonly flight: boolean;
  readonly webhook: string | undefined;
  readonly handler: string | undefined;
  readonly "secret-env": string | undefined;
  readonly kind: SynchronizerKind | undefined;
  readonly interval: number;
  readonly limit: number;
  readonly yes: boolean;
  readonly conformance: boolean;
  readonly "read-env": string | undefined;
  readonly prefix: string;
  readonly dialect: Dialect | undefined;
  readonly "base-path": string | undefined;
  readonly "allow-insecure": boolean;
  readonly timeout: number;
  readonly json: boolean;
  readonly help: boolean;
}

export type OptionName = keyof Values;

/** All options, in the order of the help. */
export const options: { readonly [Name in OptionName]: Option<Values[Name]> } = {
  key: text("<key>", "the idempotency key"),
  scope: {
    takes: "<name>",
    isList: true,
    doc: "the scope of the key; repeat it if the scope is a list",
    default: [],
  },
  "scope-list": flag("the scope is a list, even though it has only one name"),
  http: flag("the key of a request, by withIdempotency() or idempotent(), not of run()"),
  flight: flag("the key of a singleFlight()"),
  webhook: text(
    "<sender>",
    "the id of a webhook's delivery, e.g. from stripe; --scope takes what follows in its scope",
  ),
  handler: text(
    "<name>",
    "with --http or --webhook: the option `handler` of your route, or else the pattern of the route, e.g. /webhooks/stripe. Some routes have none: docs/webhooks.md, Several handlers",
  ),
  "secret-env": text(
    "<name>",
    "the variable with the webhook's secret. A tag of the secret is part of the scope, unless you gave the provider a `name`",
  ),
  kind: {
    takes: "<kind>",
    doc: `a synchronizer instead of a lock: ${kinds.join(", ")}`,
    default: undefined,
    check: checkKind,
  },
  interval: integer("the pause between two looks, at least 100", 1_000, [100, 86_400_000]),
  limit: integer("how many keys of each database to walk over", 100_000, [1, 1e9], "<keys>"),
  yes: flag("do not ask"),
  conformance: flag(
    "also ask each server for everything that the library needs, and look at what it has stored. About 70 requests per endpoint, with values of up to 1 MB",
  ),
  "read-env": text("<file>", "read the variables from this file, e.g. .dev.vars"),
  prefix: {
    takes: "<prefix>",
    doc: "the `prefix` of your program's client",
    default: "redlock",
    check(name, given) {
      if (!/^[^{}]+$/.test(given)) throw new UsageError(`${name} has at least one character, and no braces`);
      return given;
    },
  },
  dialect: {
    takes: "<name>",
    doc: "upstash, redis-8.4 or redis, for all endpoints (upstash for hosts of upstash.io, else redis)",
    default: undefined,
    check: (name, given) => checkDialect(name, given as Dialect),
  },
  "base-path": text("<path>", "the `basePath` of your program's endpoints"),
  "allow-insecure": flag("the `allowInsecure` of your program's endpoints: send tokens over http://"),
  timeout: integer("how long to wait for an endpoint", 5_000, [100, 60_000]),
  json: flag("print JSON, one object per line"),
  help: flag("print this text"),
};

/** Options that say which key is meant. */
export const keyOptions = [
  "scope",
  "scope-list",
  "http",
  "flight",
  "webhook",
  "handler",
  "secret-env",
] as const;

/** Options of all commands: which endpoints are meant, and how to ask them. */
export const commonOptions = [
  "read-env",
  "prefix",
  "dialect",
  "base-path",
  "allow-insecure",
  "timeout",
  "json",
  "help",
] as const;

/** The kind that a word names, in any case, and with or without dashes: `semaphore`, `read-write-lock`. */
function checkKind(name: string, given: string): SynchronizerKind {
  const plain = given.toLowerCase().replaceAll("-", "");
  const found = kinds.find((kind) => kind.toLowerCase() === plain);
  if (found) return found as SynchronizerKind;
  throw new UsageError(`${name} is one of ${kinds.join(", ")}, not '${given}'${didYouMean(given, kinds)}`);
}

/** What other programs call the options, by their names here. */
const foreign: Readonly<Partial<Record<OptionName, string>>> = {
  "read-env": "dotenv env env-file envfile file",
  yes: "f force y",
  key: "id idempotency-key k",
  webhook: "provider",
  "secret-env": "secret",
  kind: "type",
  prefix: "key-prefix n p",
};

/** The option that was probably meant, or undefined if none is near. */
export function optionNear(given: string, names: readonly OptionName[]): OptionName | undefined {
  const translated = names.find((name) => foreign[name]?.split(" ").includes(given));
  return translated ?? ((nameHere(given, names) ?? nearest(given, names)) as OptionName | undefined);
}

/** The end of an error about an unknown name. */
export function didYouMean(given: string, names: readonly string[]): string {
  const near = nearest(given, names);
  return near === undefined ? "" : `; did you mean ${near}?`;
}
