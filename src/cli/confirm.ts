import { type CommandEnvironment, UsageError } from "./command.ts";
import { printable } from "./text.ts";

/**
 * Asks whether to go on.
 *
 * @param lines what there is to know before one decides
 * @throws UsageError where there is nobody to ask
 */
export async function confirm(
  { ask, warn }: CommandEnvironment,
  lines: readonly string[],
  question: string,
): Promise<boolean> {
  if (!ask) throw new UsageError("there is no terminal to ask at; to go on without a question: --yes");
  for (const line of lines) warn(printable(line));
  const answer = await ask(printable(`${question} [y/N] `));
  return /^y(?:es)?$/i.test(answer.trim());
}

/** The line after a no. */
export const nothingDone = "nothing was done";
