import type { Ask } from "../endpoints/ask.ts";
import type { Command, Dialect, Endpoint } from "../endpoints/endpoint.ts";
import { EndpointError, isEndpointError } from "../errors/errors.ts";

/** `node tools/lua.mjs` makes one of each `.lua` file. */
export interface Script {
  readonly source: string;
  /** Of the text with the flag, or without. */
  readonly sha: { readonly redis: string; readonly upstash: string };
}

/** Without this first line, Upstash locks the whole database while a script runs. Redis and Valkey refuse the flag. */
export const upstashFlag = "#!lua flags=allow-key-locking\n";

export function textOf(source: string, dialect: Dialect): string {
  return dialect === "upstash" ? upstashFlag + source : source;
}

export function shaOf({ sha }: Script, dialect: Dialect): string {
  return dialect === "upstash" ? sha.upstash : sha.redis;
}

const known = new WeakMap<Endpoint, Set<Script>>();

/** Sends the text once, and the hash from then on. A server that does not know the hash gets the text. */
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
      // After this failure alone, sending again is safe.
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

/** Redis before 7.2 does not say which command of a script a user may not run. */
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

export function foreignData(keys: readonly (string | undefined)[]): string {
  const which = keys.length > 1 ? `one of the keys ${keys.join(", ")}` : `the key ${keys[0]}`;
  return `${which} has foreign data: rename or delete it, or set another prefix`;
}

/** It does not quote the reply, which may contain secrets. */
export function unexpectedReply(): Error {
  return new Error("unexpected reply to a script");
}
