import type { Command, Endpoint } from "./endpoint.ts";
import { dropScript, replaceScript, type Script, takeScript, upstashFlag } from "./scripts.ts";

// A register with a ttl on one endpoint: the four operations that locks, idempotency records and semaphore
// slots are all made of. Each is one command, executed or not, and each may be executed twice without harm.

/** Requests sent, and commands as Upstash bills them. */
export interface Spent {
  requests: number;
  commands: number;
}

/** One conversation with one endpoint, within a deadline that `signal` ends. */
export interface Call {
  readonly endpoint: Endpoint;
  readonly signal: AbortSignal;
  readonly spent: Spent;
}

/** Sends one command. */
export function send(call: Call, command: Command): Promise<unknown> {
  call.spent.requests += 1;
  call.spent.commands += 1;
  return call.endpoint.send(command, call.signal);
}

/**
 * Runs a script by its hash, and by its text where the endpoint does not know it yet. `calls` tells from the
 * reply how many commands the script has called.
 */
export async function runScript(
  call: Call,
  script: Script,
  keys: readonly string[],
  args: readonly (string | number)[],
  calls: (reply: unknown) => number,
): Promise<unknown> {
  const { dialect } = call.endpoint;
  const rest = [keys.length, ...keys, ...args];
  let reply: unknown;
  try {
    reply = await send(call, ["EVALSHA", script.sha[dialect], ...rest]);
  } catch (error) {
    // NOSCRIPT proves that nothing was executed: the one failure after which sending again is safe.
    if (!(error as Error).message.includes("NOSCRIPT")) throw error;
    const source = dialect === "upstash" ? upstashFlag + script.source : script.source;
    reply = await send(call, ["EVAL", source, ...rest]);
  }
  call.spent.commands += calls(reply);
  return reply;
}

/** Whether compare-and-set commands exist there and their plain replies can be trusted. */
export function isNative({ endpoint }: Call): boolean {
  return endpoint.dialect === "upstash" && endpoint.verbatim === true;
}

/** Puts `value` into an empty register. Only an exact positive reply counts as true. */
export async function take(call: Call, key: string, value: string, ttl: number): Promise<boolean> {
  if (call.endpoint.verbatim) return (await send(call, ["SET", key, value, "NX", "PX", ttl])) === "OK";
  return (await runScript(call, takeScript, [key], [value, ttl], callsOf(value))) === value;
}

/**
 * Puts `value` into an empty register, or reads what stands there. Resolves with the value that stands there
 * afterwards: `value` itself when it was granted, by this request or by an earlier one whose reply was lost.
 */
export async function takeOrRead(call: Call, key: string, value: string, ttl: number): Promise<unknown> {
  if (call.endpoint.verbatim) {
    try {
      return (await send(call, ["SET", key, value, "NX", "GET", "PX", ttl])) ?? value;
    } catch (error) {
      // Redis before 7.0 knows NX and GET, but not together. It says so before it does anything.
      if (!(error as Error).message.includes("syntax error")) throw error;
    }
  }
  return runScript(call, takeScript, [key], [value, ttl], callsOf(value));
}

/** Replaces `old` by `value` with a new ttl; false when `old` no longer stands there. Never creates. */
export async function replace(
  call: Call,
  key: string,
  old: string,
  value: string,
  ttl: number,
): Promise<boolean> {
  if (isNative(call)) return (await send(call, ["SET", key, value, "IFEQ", old, "PX", ttl])) === "OK";
  return (await runScript(call, replaceScript, [key], [old, value, ttl], callsOf(value))) === value;
}

/** Deletes the register if `value` stands there; false when it does not. */
export async function drop(call: Call, key: string, value: string): Promise<boolean> {
  if (isNative(call)) return (await send(call, ["DELEX", key, "IFEQ", value])) === 1;
  return (await runScript(call, dropScript, [key], [value, 1], callsOf(value))) === value;
}

/** Each of these scripts reads first, and writes when it grants. */
function callsOf(value: string): (reply: unknown) => number {
  return (reply) => (reply === value ? 2 : 1);
}
