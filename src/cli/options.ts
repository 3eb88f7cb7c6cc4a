import { checkInteger, nearest } from "../check.ts";
import { checkDialect, type Dialect } from "../endpoints/endpoint.ts";
import { kindsOf } from "../sync/force-release.ts";
import type { SynchronizerKind } from "../sync/index.ts";
import { UsageError } from "./environment.ts";

// The options of all commands, one row each. Parsing, help and "did you mean" come from this table.

/** One option. */
export interface Option<Value> {
  /** How its value is called; undefined: it has none. */
  readonly takes?: string;
  /** Whether it may be given several times. */
  readonly isList?: boolean;
  readonly doc: string;
  readonly default: Value;
  /** Its value. Throws what the errors of wrong arguments are. */
  readonly check?: (name: string, text: string) => Value;
}

const flag = (doc: string): Option<boolean> => ({ doc, default: false });
const text = (takes: string, doc: string): Option<string | undefined> => ({ takes, doc, default: undefined });
const checked = <Value>(
  takes: string,
  doc: string,
  usual: Value,
  check: (name: string, text: string) => Value,
): Option<Value> => ({ takes, doc, default: usual, check });
const integer = (min: number, max: number) => (name: string, given: string) => {
  if (!/^\d+$/.test(given)) throw new UsageError(`${name} takes a whole number, not '${given}'`);
  return checkInteger(name, Number(given), min, max);
};

/** The kinds of synchronizers, as they are imported. */
const kinds = Object.keys(kindsOf);

/** The values of all options, also of those that were not given. */
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
  key: text("<key>", "a key of idempotent runs"),
  scope: {
    takes: "<name>",
    isList: true,
    doc: "the scope of the key; several times for a scope that is a list",
    default: [],
  },
  "scope-list": flag("the scope is a list, also where it has one name only"),
  http: flag("a key of withIdempotency() or idempotent(), not of run()"),
  flight: flag("a key of singleFlight()"),
  webhook: text(
    "<name>",
    "the same for webhooks of this provider, e.g. stripe; --scope for what follows in their scope",
  ),
  handler: text(
    "<name>",
    "with --http or --webhook: the option `handler` of the route, else its pattern, e.g. /webhooks/stripe; leave it out for a pattern with *, and where the framework knows none",
  ),
  "secret-env": text(
    "<name>",
    "the variable with the webhook's secret: a tag of the secret is part of the scope, unless the provider has a name of its own",
  ),
  kind: checked("<kind>", `a synchronizer instead of a lock: ${kinds.join(", ")}`, undefined, checkKind),
  interval: checked("<ms>", "pause between two looks, at least 100", 1_000, integer(100, 86_400_000)),
  yes: flag("do not ask"),
  conformance: flag(
    "ask as well for all that the library needs of a server, one by one, and look at what is stored: yes, no or unknown, and what happens without it. About 100 requests per endpoint; it writes below <prefix>:doctor, values of up to 1 MB, and deletes them, also after Ctrl-C",
  ),
  "read-env": text("<file>", "read the variables from this file instead, e.g. .dev.vars"),
  prefix: checked("<prefix>", "the `prefix` of your program's client", "redlock", checkPrefix),
  dialect: checked(
    "<name>",
    "upstash, redis-8.4 or redis, for all endpoints (upstash for hosts of upstash.io, else redis)",
    undefined,
    (name, given) => checkDialect(name, given as Dialect),
  ),
  "base-path": text("<path>", "the `basePath` of your program's endpoints, for all of them"),
  "allow-insecure": flag("`allowInsecure`: send tokens over http:// to public hosts, too"),
  timeout: checked("<ms>", "how long to wait for an endpoint", 5_000, integer(100, 60_000)),
  json: flag("print JSON, one object per line; docs/operations.md lists the fields"),
  help: flag("this text"),
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

function checkPrefix(name: string, given: string): string {
  if (!/^[^{}]+$/.test(given)) throw new UsageError(`${name} has at least one character, and no braces`);
  return given;
}

/** The kind that a word names, in any case, and also with dashes: `semaphore`, `read-write-lock`. */
function checkKind(name: string, given: string): SynchronizerKind {
  const plain = given.toLowerCase().replaceAll("-", "");
  const found = kinds.find((kind) => kind.toLowerCase() === plain);
  if (found) return found as SynchronizerKind;
  throw new UsageError(`${name} is one of ${kinds.join(", ")}, not '${given}'${didYouMean(given, kinds)}`);
}

/**
 * The end of an error about an unknown name.
 *
 * @param before what stands before the names where they are typed
 */
export function didYouMean(given: string, names: readonly string[], before = ""): string {
  const near = nearest(given, names);
  return near === undefined ? "" : `; did you mean ${before}${near}?`;
}
