import { checkNames } from "../check.ts";
import { batchingSend, type Outcome, type Post } from "../endpoints/batch.ts";
import type { Endpoint } from "../endpoints/endpoint.ts";
import { setServer } from "../endpoints/server.ts";
import { EndpointError } from "../errors.ts";
import type { CommandResult } from "./lock-server.ts";
import {
  type LockServerNamespace,
  LockServerObjects,
  type LockServerOptions,
  lockServerOptionNames,
  Refusal,
} from "./objects.ts";

/**
 * An endpoint for a lock server in the same account of Cloudflare: through its binding, without a token. Experimental. Its
 * name in votes, errors and events is that of the server.
 *
 * @throws TypeError | RangeError when the binding is none, or an option is wrong
 * @example
 * const redlock = new Redlock({ endpoints: [durableEndpoint(env.LOCKS)] });
 */
export function durableEndpoint(namespace: LockServerNamespace, options: LockServerOptions = {}): Endpoint {
  checkNames("durableEndpoint", options, lockServerOptionNames);
  const objects = new LockServerObjects(namespace, options);
  const { name = "locks" } = options;
  const post: Post = async (batch, signal) => {
    try {
      const results = await objects.execute(
        batch.map(({ command }) => command),
        signal,
      );
      return results.map((result) => outcomeOf(name, result));
    } catch (cause) {
      const error = failureOf(name, cause, signal);
      return batch.map(() => ({ error }));
    }
  };
  // The platform queues what is too much.
  const send = batchingSend(name, 10_000, post);
  setServer(send, namespace);
  return {
    name,
    dialect: "redis-8.4",
    exactReplies: true,
    send,
    async subscribe(channel, signal) {
      try {
        return await objects.subscribe(channel, signal);
      } catch (cause) {
        throw failureOf(name, cause, signal);
      }
    },
  };
}

function outcomeOf(name: string, given: CommandResult): Outcome {
  if ("result" in given) return { reply: given.result };
  return { error: new EndpointError(name, "redis", given.error) };
}

function failureOf(name: string, cause: unknown, signal: AbortSignal): EndpointError {
  if (signal.aborted) return new EndpointError(name, "timeout", "no answer in time");
  if (cause instanceof Refusal) {
    return new EndpointError(name, "http", cause.message, { status: cause.status });
  }
  const said = cause instanceof Error ? cause.message : String(cause);
  return new EndpointError(name, "network", `the request to the object failed (${said})`, { cause });
}
