import { type Call, send } from "../endpoints/call.ts";
import type { Command } from "../endpoints/endpoint.ts";

/** A Lua script and its SHA-1 in each dialect (a test recomputes them; `scripts/script-hashes.mjs` writes them). */
export interface Script {
  readonly source: string;
  readonly sha: { readonly redis: string; readonly upstash: string };
}

/**
 * First line of every script in the `upstash` dialect: without it Upstash runs a script under a lock on the
 * whole database. Redis 7 refuses the flag.
 */
export const upstashFlag = "#!lua flags=allow-key-locking\n";

/** Runs a script by its hash, and by its text where the endpoint does not know it yet. */
export async function runScript(
  call: Call,
  script: Script,
  keys: readonly string[],
  args: Command,
): Promise<unknown> {
  const { dialect } = call.endpoint;
  const rest = [keys.length, ...keys, ...args];
  try {
    return await send(call, ["EVALSHA", script.sha[dialect], ...rest]);
  } catch (error) {
    // NOSCRIPT proves that nothing was executed: the one failure after which sending again is safe.
    if (!(error as Error).message.includes("NOSCRIPT")) throw error;
    return runSource(call, script.source, rest);
  }
}

/** Runs a script by its text. `rest`: the number of keys, the keys, the arguments. */
export function runSource(call: Call, source: string, rest: Command): Promise<unknown> {
  const flag = call.endpoint.dialect === "upstash" ? upstashFlag : "";
  return send(call, ["EVAL", flag + source, ...rest]);
}

/** The error for a reply that the script cannot have given. The reply may contain secrets, so it is not quoted. */
export function unexpectedReply(): Error {
  return new Error("unexpected reply to a script");
}
