import type { Ask } from "../endpoints/ask.ts";
import type { Command, Dialect, Endpoint } from "../endpoints/endpoint.ts";
import { EndpointError, isEndpointError } from "../errors/errors.ts";

/** A Lua script. `node tools/lua.mjs` makes one of each `.lua` file. */
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

/** By endpoint: the scripts whose text was sent to it. */
const known = new WeakMap<Endpoint, Set<Script>>();

/**
 * Runs a script: by its text the first time, by its hash from then on, even while the text is on the way: the hash usually
 * arrives after it. A server that does not know the hash gets the text.
 */
export async function runScript(
  ask: Ask,
  script: Script,
  keys: readonly string[],
  args: Command,
): Promise<unknown> {
  const { endpoint } = ask;
  const rest = [keys.length, ...keys, ...args];
  const send = (command: Command) =>
    ask.send(command).catch((error: unknown) => explain(error, script, keys));
  const scripts = known.get(endpoint) ?? new Set();
  known.set(endpoint, scripts);
  if (scripts.has(script)) {
    try {
      return await send(["EVALSHA", shaOf(script, endpoint.dialect), ...rest]);
    } catch (error) {
      // NOSCRIPT proves that nothing was executed: the one failure after which sending again is safe.
      if (!(error as Error).message.includes("NOSCRIPT")) throw error;
    }
  }
  scripts.add(script);
  try {
    return await send(["EVAL", textOf(script.source, endpoint.dialect), ...rest]);
  } catch (error) {
    // The text may not have arrived.
    scripts.delete(script);
    throw error;
  }
}

/**
 * Adds to a server's error the part that it leaves out. Redis before 7.2 does not say which command of a script a user may not
 * run.
 */
function explain(error: unknown, { source }: Script, keys: readonly string[]): never {
  if (!isEndpointError(error)) throw error;
  const { endpoint, kind, message, status } = error;
  let more = "";
  if (/script can't run/.test(message)) {
    const calls = new Set([...source.matchAll(/(?:call|run)\("([A-Z]+)/g)].map(([, name]) => name));
    more = `It calls ${[...calls].join(", ")}.`;
  } else if (message.includes("WRONGTYPE")) more = foreignData(keys);
  if (!more) throw error;
  throw new EndpointError(endpoint, kind, `${message.slice(endpoint.length + 2)} ${more}`, {
    status: status!,
  });
}

/** What an error says where another program has written one of these keys. */
export function foreignData(keys: readonly (string | undefined)[]): string {
  const which = keys.length > 1 ? `one of the keys ${keys.join(", ")}` : `the key ${keys[0]}`;
  return `${which} has foreign data: rename or delete it, or set another prefix`;
}

/** The error for a reply that no script gives. It does not quote the reply, which may contain secrets. */
export function unexpectedReply(): Error {
  return new Error("unexpected reply to a script");
}
