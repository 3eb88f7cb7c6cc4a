import type { Command, Dialect, Endpoint } from "../endpoints/endpoint.ts";
import { type EndpointRequest, send } from "../endpoints/endpoint-request.ts";
import { sharesRequests } from "../platform.ts";

/** A Lua script. `npm run scripts` makes one of each `.lua` file. */
export interface Script {
  readonly source: string;
  /** SHA-1 of the text that is sent: `upstash` with the flag, `redis` without it, for all other dialects. */
  readonly sha: { readonly redis: string; readonly upstash: string };
}

/**
 * First line of every script in the `upstash` dialect: without it Upstash runs a script under a lock on the
 * whole database. Other servers refuse the flag: Redis since 7.0 and Valkey with "Unexpected flag in script shebang",
 * Redis 6.2 with a syntax error.
 */
export const upstashFlag = "#!lua flags=allow-key-locking\n";

/** A script's text as it is sent in a dialect. */
export function textOf(source: string, dialect: Dialect): string {
  return dialect === "upstash" ? upstashFlag + source : source;
}

/** The SHA-1 of that text. */
export function shaOf({ sha }: Script, dialect: Dialect): string {
  return dialect === "upstash" ? sha.upstash : sha.redis;
}

/** The texts of scripts that are on their way, by endpoint: each settles with its answer, or when it is given up. */
const loads = new WeakMap<Endpoint, Map<Script, Promise<void>>>();

/** Runs a script by its hash, and by its text where the endpoint does not know it yet. */
export async function runScript(
  call: EndpointRequest,
  script: Script,
  keys: readonly string[],
  args: Command,
): Promise<unknown> {
  const { endpoint } = call;
  const rest = [keys.length, ...keys, ...args];
  const underWay = loads.get(endpoint) ?? new Map<Script, Promise<void>>();
  loads.set(endpoint, underWay);
  for (let hasWaited = false; ; hasWaited = true) {
    try {
      return await send(call, ["EVALSHA", shaOf(script, endpoint.dialect), ...rest]);
    } catch (error) {
      // NOSCRIPT proves that nothing was executed: the one failure after which sending again is safe.
      if (!(error as Error).message.includes("NOSCRIPT")) throw error;
    }
    // Of many that ask at the same time, one sends the text.
    const load = underWay.get(script);
    if (!load || hasWaited) break;
    await load;
  }
  const running = runSource(call, script.source, rest);
  // An endpoint that ignores its signal may never answer.
  const done = new Promise<void>((resolve) => {
    call.deadline.addEventListener("abort", resolve);
    running.then(resolve as () => void, resolve);
  });
  underWay.set(script, done);
  // Others of the same turn may always wait for it: what asks in one turn belongs to one invocation.
  void Promise.resolve(sharesRequests() && done).then(() => underWay.delete(script));
  return running;
}

/** Runs a script by its text. `rest`: the number of keys, the keys, the arguments. */
export function runSource(call: EndpointRequest, source: string, rest: Command): Promise<unknown> {
  return send(call, ["EVAL", textOf(source, call.endpoint.dialect), ...rest]);
}

/** The error for a reply that the script cannot have given. The reply may contain secrets, so it is not quoted. */
export function unexpectedReply(): Error {
  return new Error("unexpected reply to a script");
}
