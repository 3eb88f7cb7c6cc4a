import { checkOptions, later, wrongType } from "../check/check.ts";
import { EndpointError } from "../errors/errors.ts";
import { addressOf } from "./address.ts";
import { type Dialect, dialectOf, type Endpoint, endpointSchema, withoutSecrets } from "./endpoint.ts";
import { type ClientWay, roomOf, sendThrough } from "./hand-over.ts";
import { answerReason, networkReason, subscriber } from "./post.ts";

/** The part of an `@upstash/redis` client that this package uses. */
export interface UpstashClient {
  /** Runs a Lua script. */
  eval(script: string, keys: string[], args: unknown[]): Promise<unknown>;
  /** Runs a script that Redis knows by its SHA-1 hash. */
  evalsha(sha: string, keys: string[], args: unknown[]): Promise<unknown>;
  /** Is not called: other clients do not have it. */
  createScript(script: string): unknown;
}

/** Options for an endpoint over an `@upstash/redis` client. */
export interface UpstashEndpointOptions {
  /**
   * The path of the client's URL, where it is a gateway's, for example `"/redis"`. Upstash would run any other path as a
   * command. Default: the client's URL has none.
   */
  readonly basePath?: string | undefined;
  /** Allows that the client sends the token over `http://` to a public host. Default false. */
  readonly allowInsecure?: boolean | undefined;
  /** Default: the host that the client talks to, followed by `basePath`. */
  readonly name?: string | undefined;
  /** Default: `upstash` when the client's host ends in `.upstash.io`, else `redis`. */
  readonly dialect?: Dialect | undefined;
}

/**
 * An endpoint over an `@upstash/redis` client of your own.
 *
 * It stays correct although the client retries and may invent replies, at one more billed command per acquire:
 * everything is sent as a script that recognises its own earlier execution and echoes the lock's token. The client cannot
 * cancel a single request. One that outlives its timeout is rolled back when it ends.
 *
 * Streams for `wakeUp` are opened beside the client, with its URL and token, where the client exposes them. Where it does
 * not, its URL is not checked.
 *
 * @throws TypeError when `client` is not an `@upstash/redis` client, or its URL cannot be used: see `HttpEndpointOptions`
 *
 * @example
 * new Redlock({ endpoints: [upstashEndpoint(new Redis({ url, token }), { name: "eu-west-1" })] })
 */
export function upstashEndpoint(client: UpstashClient, options: UpstashEndpointOptions = {}): Endpoint {
  // createScript tells it from ioredis and node-redis, whose eval takes other arguments.
  if (!client?.createScript) throw wrongType("the client", client, "a client of @upstash/redis");
  checkOptions("upstashEndpoint", options, { ...endpointSchema, basePath: later, allowInsecure: later });
  const address = addressIn(client, options);
  const name = options.name ?? address?.name ?? "@upstash/redis";
  const dialect = options.dialect ?? dialectOf(address?.name ?? "");

  const [, token] = requesterOf(client).authorization;
  // The client's own reader of streams ends without a word when a stream does.
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

/** Calls the client's method of a script. */
function callOf(client: UpstashClient): ClientWay["call"] {
  return ([operation, script = "", count, ...parts]) => {
    const keys = parts.slice(0, Number(count));
    const args = parts.slice(keys.length);
    return operation === "EVAL" ? client.eval(script, keys, args) : client.evalsha(script, keys, args);
  };
}

/** What an error of the client means. */
function endpointErrorOf(name: string, error: Error, withoutTokens: (text: string) => string): EndpointError {
  const { message, name: kind } = error;
  if (kind === "UpstashJSONParseError") {
    // It quotes the text that it could not parse: of that, only a refusal of the token is said.
    const [, refusal = ""] = /body: (Unauthorized|Invalid token)/.exec(message) ?? [];
    // The client does not show the status: a text that is not JSON may also be a gateway's page.
    return answerError(name, refusal, 502);
  }
  // JavaScript's own errors: the client reads a reply where there is none. Messages of a failed fetch differ.
  const isOdd =
    kind === "TypeError" && /^Cannot read|is not an? |did not return| is (null|undefined)/.test(message);
  if (isOdd) return answerError(name, "", 200);
  if (!kind.startsWith("Upstash")) {
    return new EndpointError(name, "network", withoutTokens(networkReason(error)));
  }
  // The answer of another API may have an error that is not a text.
  return answerError(name, withoutTokens(message).replace(/^undefined$/, ""), 200);
}

/** `said`: Redis' own error. `""`: the answer is not one of the REST API. */
function answerError(name: string, said: string, status: number): EndpointError {
  return new EndpointError(name, said ? "redis" : "malformed", answerReason(said, status));
}

/** The part of the client that sends its requests, where it exposes it. */
function requesterOf(client: UpstashClient) {
  const { baseUrl, headers } = Object(Object(client).client) as { baseUrl?: unknown; headers?: unknown };
  const { authorization = "" } = Object(headers) as { authorization?: unknown };
  return { baseUrl, authorization: String(authorization).split(" ") };
}

/** The address that the client sends its requests to, where it exposes it. */
function addressIn(client: UpstashClient, options: UpstashEndpointOptions) {
  const { baseUrl } = requesterOf(client);
  if (typeof baseUrl !== "string" || !baseUrl) return undefined;
  // The client takes one slash off the end of its URL, and puts one before the path of a pipeline.
  const path = `${options.basePath ?? ""}/`.replace("//", "/");
  return addressOf("the client's URL", `${baseUrl}/`, options, path);
}
