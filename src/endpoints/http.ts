import { checkOptions, checkType, integer, later, type Schema, typed, wrongType } from "../check/check.ts";
import { addressOf } from "./address.ts";
import { batchingSend } from "./batch.ts";
import { checkDialect, type Dialect, dialectOf, type Endpoint, endpointSchema } from "./endpoint.ts";
import { postTo, subscriber } from "./post.ts";

/** Options of {@link httpEndpoint}. */
export interface HttpEndpointOptions {
  /**
   * URL of the REST server, `https://…`, without credentials, path, query and fragment, because Upstash runs a path as
   * a command.
   */
  readonly url: string;
  /** The REST token. Never logged, and never sent to another address. */
  readonly token: string;
  /**
   * A gateway's path to the REST API, for example `"/redis"`: letters, digits, `-`, `_` and `.` between slashes. An
   * acquire then costs one more billed command, because only scripts are used, in case the gateway does not take the
   * path off. Default: none.
   */
  readonly basePath?: string | undefined;
  /**
   * Allows `http://` to a public host, where everybody on the way can read the token, and with it all data. Not needed
   * for `localhost`, private IP addresses, names of one label, and names that end in `.localhost`, `.local`,
   * `.internal`, `.lan` or `.home.arpa`. Default false.
   */
  readonly allowInsecure?: boolean | undefined;
  /** Default: the URL's host, followed by `basePath`. */
  readonly name?: string | undefined;
  /** Default: `upstash` when the host ends in `.upstash.io`, else `redis`. */
  readonly dialect?: Dialect | undefined;
  /**
   * The most requests to this endpoint that are open at once, 1 … 10 000. Other commands wait, and then share a
   * request. On Workers the platform's own limit counts instead. Default 6.
   */
  readonly maxRequests?: number | undefined;
  /** Whether commands of one turn share a request, to `/pipeline`. False for a gateway without it. Default true. */
  readonly pipelines?: boolean | undefined;
}

const schema: Schema<HttpEndpointOptions> = {
  ...endpointSchema,
  url: later,
  token: later,
  basePath: later,
  allowInsecure: later,
  maxRequests: integer(1, 10_000),
  pipelines: typed("boolean"),
};

/**
 * An endpoint that speaks Upstash's REST protocol through the global `fetch`, without retries.
 *
 * @throws TypeError when `url` or `token` cannot be used
 * @example
 * httpEndpoint({ url: env.UPSTASH_REDIS_REST_URL, token: env.UPSTASH_REDIS_REST_TOKEN })
 */
export function httpEndpoint(options: HttpEndpointOptions): Endpoint {
  return restEndpoint(options, "endpoint", "");
}

/** @param where for errors, as the suffix of the variables, `number` */
function restEndpoint(options: HttpEndpointOptions, where: string, number: string): Endpoint {
  const { url, token } = checkType(where, options, "object");
  // A local endpoint's class has more than options.
  if (Object.getPrototypeOf(options) === Object.prototype) checkOptions(where, options, schema);
  for (const option of ["url", "token"] as const) {
    if (options[option]) continue;
    const variable = `UPSTASH_REDIS_REST_${option.toUpperCase()}${number}`;
    throw new TypeError(`${where}.${option} is missing (is ${variable} set?)`);
  }
  const { href, name: address } = addressOf(`${where}.url`, url, options);
  // With a line break, fetch's error prints the whole header.
  if (typeof token !== "string" || !/^(?!(["']).*\1$)[\x21-\x7e]+$/.test(token)) {
    throw new TypeError(
      `${where}.token (of ${address}) must be printable ASCII without quotes, spaces and line breaks`,
    );
  }
  const { name = address, dialect = dialectOf(address), maxRequests = 6, pipelines = true } = options;
  const send = batchingSend({ name, maxRequests, pipelines, post: postTo(name, href, token) });
  const subscribe = subscriber(name, href, token);
  return { name, dialect, exactReplies: !options.basePath, send, subscribe };
}

/**
 * @param options tell which package's client was given
 * @throws TypeError | RangeError when one cannot be used, there is none, or two are equal
 */
export function asEndpoints(
  given: readonly (HttpEndpointOptions | Endpoint)[],
  options: unknown = given,
): Endpoint[] {
  if (!Array.isArray(given) || given.length === 0) throw noEndpoints(given, options);
  const endpoints = given.map(asEndpoint);
  // One Redis that is listed twice is no second opinion.
  const names = endpoints.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) {
    throw new RangeError(
      `two endpoints are named ${twice}; each must be a Redis of its own, with its own name`,
    );
  }
  return endpoints;
}

/** For each client, a property that the ones before do not have, and what to import. */
const wrappers = [
  ["createScript", "upstashEndpoint", "redlock-edge"],
  ["isOpen", "nodeRedisEndpoint", "redlock-edge/sockets"],
  ["evalsha", "ioredisEndpoint", "redlock-edge/sockets"],
] as const;

function wrapperOf(client: unknown): (typeof wrappers)[number] | undefined {
  return wrappers.find(([property]) => property in Object(client));
}

function noEndpoints(given: unknown, options: unknown): TypeError {
  const clients = [options, ...Object.values(Object(options))].flat();
  const [, wrapper, from] = clients.map(wrapperOf).find(Boolean) ?? [];
  const [list, where] = wrapper
    ? [`[${wrapper}(client)]`, `, with ${wrapper} of ${from}`]
    : ["endpointsFromEnv(env)", ""];
  return wrongType("endpoints", given, `an array, as in new Redlock({ endpoints: ${list} })${where}`);
}

function asEndpoint(given: HttpEndpointOptions | Endpoint, index: number, all: readonly unknown[]): Endpoint {
  const where = `endpoints[${index}]`;
  // Not shown, because it may be a token.
  if (typeof given !== "object" || given === null) {
    const hint =
      typeof given === "function"
        ? ", not a function: call it"
        : "; for the Redis protocol there is redlock-edge/sockets";
    throw new TypeError(`${where} must be { url, token }${hint}`);
  }
  const { send, name, dialect } = given as Partial<Endpoint>;
  if (typeof send === "function") {
    checkType(`${where}.name`, name, "string");
    checkDialect(`${where}.dialect`, dialect!);
    return given as Endpoint;
  }
  const [, wrapper, from] = wrapperOf(given) ?? [];
  if (wrapper) {
    throw new TypeError(`${where} is another package's client; wrap it: ${wrapper}(client) of ${from}`);
  }
  return restEndpoint(given as HttpEndpointOptions, where, all.length > 1 ? `_${index + 1}` : "");
}
