import { type Endpoint, EndpointError } from "redlock-edge";
import { type LockServerNamespace, LockServerObject, type LockServerOptions, Refusal } from "./object.ts";

/** By binding and options. On Workers each request makes an endpoint, and what one has learnt of the server is of use to all. */
const known = new WeakMap<LockServerNamespace, Map<string, Endpoint>>();

/**
 * An endpoint for a lock server in the same account of Cloudflare: through its binding, without a token. Experimental. Its
 * name in votes, errors and events is that of the server.
 *
 * @returns the same endpoint for the same binding and options
 * @throws TypeError | RangeError when the binding is none, or an option is wrong
 * @example
 * const redlock = new Redlock({ endpoints: [durableEndpoint(env.LOCKS)] });
 */
export function durableEndpoint(namespace: LockServerNamespace, options: LockServerOptions = {}): Endpoint {
  const { name = "locks", locationHint, jurisdiction } = options;
  const object = new LockServerObject(namespace, options);
  const endpoints = known.get(namespace) ?? new Map<string, Endpoint>();
  known.set(namespace, endpoints);
  const server = JSON.stringify([name, locationHint, jurisdiction]);
  const endpoint = endpoints.get(server) ?? endpointOf(name, object);
  endpoints.set(server, endpoint);
  return endpoint;
}

function endpointOf(name: string, object: LockServerObject): Endpoint {
  return {
    name,
    dialect: "redis-8.4",
    exactReplies: true,
    async send(command, signal) {
      const [given] = await object.execute([command], signal).catch((cause) => {
        throw failureOf(name, cause, signal);
      });
      if ("error" in given!) throw new EndpointError(name, "redis", given.error);
      return given!.result;
    },
    async subscribe(channel, signal) {
      try {
        return await object.subscribe(channel, signal);
      } catch (cause) {
        throw failureOf(name, cause, signal);
      }
    },
  };
}

function failureOf(name: string, cause: unknown, signal: AbortSignal): EndpointError {
  if (signal.aborted) {
    const { reason } = signal;
    return new EndpointError(name, "timeout", reason instanceof Error ? reason.message : String(reason));
  }
  if (cause instanceof Refusal) {
    return new EndpointError(name, "http", cause.message, { status: cause.status });
  }
  const said = cause instanceof Error ? cause.message : String(cause);
  return new EndpointError(name, "network", `the request to the object failed (${said})`, { cause });
}
