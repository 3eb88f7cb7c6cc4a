import { checkType } from "../check.ts";
import { EndpointError } from "../errors.ts";
import { checkDialect, type Dialect, dialectOf, type Endpoint, withoutSecrets } from "./endpoint.ts";

/** What this package needs of an `@upstash/redis` client. */
export interface UpstashClient {
  eval(script: string, keys: string[], args: unknown[]): Promise<unknown>;
  evalsha(sha: string, keys: string[], args: unknown[]): Promise<unknown>;
  createScript(script: string): unknown;
}

/** How to treat a caller's own `@upstash/redis` client. */
export interface UpstashEndpointOptions {
  /** Default: the host that the client talks to. */
  readonly name?: string | undefined;
  /** Default: `upstash` when the client's host ends in `.upstash.io`, else `redis`. */
  readonly dialect?: Dialect | undefined;
}

/**
 * An endpoint over a caller's own `@upstash/redis` client. Clients passed in `endpoints` are wrapped by
 * themselves; call this to give one a name.
 *
 * It is right in spite of the client's retries and invented replies, at one more billed command for an
 * acquire: everything goes as a script that recognises its own earlier execution and echoes the lock's token.
 * The client cannot cancel a single request; one that outlives its timeout is cleaned up when it ends.
 *
 * @example
 * new Redlock({ endpoints: [upstashEndpoint(new Redis({ url, token }), { name: "eu-west-1" })] })
 */
export function upstashEndpoint(client: UpstashClient, options: UpstashEndpointOptions = {}): Endpoint {
  const host = hostOf(client);
  const name = checkType("name", options.name ?? host, "string");
  const dialect = checkDialect(options.dialect) ?? dialectOf(host);

  return {
    name,
    dialect,
    async send(command) {
      const [operation, ...rest] = command.map(String);
      try {
        const [script = "", count, ...parts] = rest;
        const keys = parts.slice(0, Number(count));
        const args = parts.slice(keys.length);
        return operation === "EVAL"
          ? await client.eval(script, keys, args)
          : await client.evalsha(script, keys, args);
      } catch (error) {
        // Not kept as the cause: the client's errors quote the whole command with its tokens.
        const { message, name: kind } = error as Error;
        // It quotes the body, or what it takes for one.
        if (kind === "UpstashJSONParseError") throw new EndpointError(name, "malformed", "no usable reply");
        const said = withoutSecrets(String(message), [...authorizationOf(client), ...command]);
        throw new EndpointError(name, kind === "UpstashError" ? "redis" : "network", said);
      }
    },
  };
}

/** Whether `value` looks like an `@upstash/redis` client. */
export function isUpstashClient(value: unknown): value is UpstashClient {
  const client = value as Partial<UpstashClient> | null;
  // createScript tells it from ioredis and node-redis, whose eval takes other arguments.
  return typeof client?.createScript === "function" && typeof client.evalsha === "function";
}

/** What the client keeps to itself, as far as it is known: how it sends requests, and where to. */
interface Requester {
  readonly baseUrl?: unknown;
  readonly headers?: { readonly authorization?: string };
}

function requesterOf(client: UpstashClient): Requester {
  return (client as { client?: Requester }).client ?? {};
}

function authorizationOf(client: UpstashClient): string[] {
  return String(requesterOf(client).headers?.authorization ?? "").split(" ");
}

function hostOf(client: UpstashClient): string {
  const { baseUrl } = requesterOf(client);
  try {
    return new URL(String(baseUrl)).host;
  } catch {
    return "@upstash/redis";
  }
}
