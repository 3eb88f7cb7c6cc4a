import type { Command } from "../../endpoints/endpoint.ts";
import type { EndpointCall } from "../../endpoints/endpoint-call.ts";
import { runScript, type Script, unexpectedReply } from "../../redis/script.ts";

// How the replies of scripts are read. An endpoint may return anything, so nothing is known of them.

/** The items of an array reply; none where it is anything else. */
export function itemsOf(reply: unknown): readonly unknown[] {
  // Stryker disable next-line ArrayDeclaration: what it would contain is no reply of a script either
  return Array.isArray(reply) ? reply : [];
}

/** Whether it is an integer that a double holds exactly. */
export function isInteger(value: unknown): value is number {
  return Number.isSafeInteger(value);
}

/**
 * Runs a script that returns, behind its first item, how many commands it has executed.
 *
 * @returns the other items
 */
export async function runCounting(
  call: EndpointCall,
  script: Script,
  keys: readonly string[],
  args: Command,
): Promise<readonly unknown[]> {
  const [echo, commands, ...items] = itemsOf(await runScript(call, script, keys, args));
  if (!isInteger(commands)) throw unexpectedReply();
  return [echo, ...items];
}
