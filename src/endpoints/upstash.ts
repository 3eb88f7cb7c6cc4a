import { later, wrongType } from "../check/check.ts";
import { EndpointError } from "../errors/errors.ts";
import { addressOf } from "./address.ts";
import {
  checkEndpointOptions,
  type Dialect,
  dialectOf,
  type Endpoint,
  endpointSchema,
  withoutSecrets,
} from "./endpoint.ts";
import { type ClientWay, roomOf, sendThrough } from "./hand-over.ts";
import { answerReason, networkReason, subscriber } from "./post.ts";

/** The part of an `@upstash/redis` client that this package uses. */
export interface UpstashClient {
  /** Runs a Lua script. */
  eval(script: string, keys: string[], args: unknown[]): Promise<unknown>;
  /** Runs a script that Redis knows by its SHA-1 hash. */
  evalsha(sha: string, keys: string[], args: unknown[]): Promise<unknown>;
  /** Never called: it tells the client from other packages'. */
  createScript(script: string): unknown;
}

/** Options for an endpoint over an `@upstash/redis` client. */
export interface UpstashEndpointOptions {
  /** A gateway's path in the client's URL, for example `"/redis"`. Upstash would run it as a command. Default: none. */
  readonly basePath?: string | undefined;
  /** Allows the client to send the token over `http://` to a public host. Default false. */
  readonly allowInsecure?: boolean | undefined;
  /** Default: the client's host, followed by `basePath`. */
  readonly name?: string | undefined;
  /** Default: `upstash` when the client's host ends in `.upstash.io`, else `redis`. */
  readonly dialect?: Dialect | undefined;
}

/**
 * An endpoint over an `@upstash/redis` client of your own.
 *
 * The client may retry and invent replies, so only scripts are used, which costs one more billed command per acquire.
 * If the client does not expose its URL and token, its URL is not checked, and there are no streams for `wakeUp`.
 *
 * @throws TypeError when `client` is not an `@upstash/redis` client, or its URL cannot be used: see
 * `HttpEndpointOptions`
 *
 * @example
 * new Redlock({ endpoints: [upstashEndpoint(new Redis({ url, token }), { name: "eu-west-1" })] })
 */
export function upstashEndpoint(client: UpstashClient, options: UpstashEndpointOptions = {}): Endpoint {
  // The `eval` of ioredis and node-redis takes other arguments.
  if (!client?.createScript) throw wrongType("the client", client, "a client of @upstash/redis");
  checkEndpointOptions("upstashEndpoint", options, {
    ...endpointSchema,
    basePath: later,
    allowInsecure: later,
  });
  const address = addressIn(client, options);
  const name = options.name ?? address?.name ?? "@upstash/redis";
  const dialect = options.dialect ?? dialectOf(address?.name ?? "");

  const [, token] = requesterOf(client).authorization;
  // The client's own reader does not say when a stream ends.
  const streams = address && token ? { subscribe: subscriber(name, address.href, token) } : {};

  return {
    name,
    dialect,
    ...streams,
    send: sendThrough(name, {
      room: roomOf(client),
      call: callOf(client),
      errorOf: (error, command) =>
        endpointErrorOf(name, error as Error, (text) =>
          withoutSecrets(text, [...requesterOf(client).authorization, ...command]),
        ),
    }),
  };
}

function callOf(client: UpstashClient): ClientWay["call"] {
  return ([operation, script = "", count, ...parts]) => {
    const keys = parts.slice(0, Number(count));
    const args = parts.slice(keys.length);
    return operation === "EVAL" ? client.eval(script, keys, args) : client.evalsha(script, keys, args);
  };
}

function endpointErrorOf(name: string, error: Error, withoutTokens: (text: string) => string): EndpointError {
  const { message, name: kind } = error;
  if (kind === "UpstashJSONParseError") {
    // It quotes the text, so only a refusal of the token is repeated.
    const [, refusal = ""] = /body: (Unauthorized|Invalid token)/.exec(message) ?? [];
    // The text may be a gateway's page.
    return answerError(name, refusal, 502);
  }
  // The client reads a missing reply.
  const isOdd =
    kind === "TypeError" && /^Cannot read|is not an? |did not return| is (null|undefined)/.test(message);
  if (isOdd) return answerError(name, "", 200);
  if (!kind.startsWith("Upstash")) {
    return new EndpointError(name, "network", withoutTokens(networkReason(error)));
  }
  // Another API's error may not be a text.
  return answerError(name, withoutTokens(message).replace(/^undefined$/, ""), 200);
}

function answerError(name: string, said: string, status: number): EndpointError {
  return new EndpointError(name, said ? "redis" : "malformed", answerReason(said, status));
}

function requesterOf(client: UpstashClient) {
  const { baseUrl, headers } = Object(Object(client).client) as { baseUrl?: unknown; headers?: unknown };
  const { authorization = "" } = Object(headers) as { authorization?: unknown };
  return { baseUrl, authorization: String(authorization).split(" ") };
}

function addressIn(client: UpstashClient, options: UpstashEndpointOptions) {
  const { baseUrl } = requesterOf(client);
  if (typeof baseUrl !== "string" || !baseUrl) return undefined;
  // The client takes one slash off its URL, and puts one before a pipeline's path.
  const path = `${options.basePath ?? ""}/`.replace("//", "/");
  return addressOf("the client's URL", `${baseUrl}/`, options, path);
}
