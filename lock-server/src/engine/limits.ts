import type { Reply } from "../twins/twin.ts";

// How much one request may ask of an object, which has 128 MB of memory and answers nobody else meanwhile.

/** The most commands of a request. */
const mostCommands = 10_000;

/** The most words of a request: a command asks its storage about once for each. */
const mostWords = 100_000;

/** The most characters of a reply, and of all replies to one request. */
export const largestReply = 10_000_000;

/** The most characters of values that are read and written for a request: some seconds. */
export const mostWork = 1_000_000_000;

/** Why a request has too many commands or words; undefined: it is within the limits. */
export function whyTooLong(commands: readonly (readonly unknown[])[]): string | undefined {
  const words = commands.reduce((sum, { length }) => sum + length, 0);
  if (commands.length <= mostCommands && words <= mostWords) return undefined;
  return `ERR max request size of ${mostCommands} commands and ${mostWords} words exceeded, with ${commands.length} and ${words}: nothing was executed`;
}

/** How many characters a reply has, without those of JSON. */
export function sizeOf(reply: Reply): number {
  if (typeof reply === "string") return reply.length;
  return Array.isArray(reply) ? reply.reduce((sum, part) => sum + sizeOf(part), 0) : 0;
}

/**
 * A command asks for more than the limits of its request leave: it is undone, and those after it are not executed. No
 * `ReplyError`, which a script may survive.
 */
export class LimitExceeded extends Error {
  /** @param what the limit, with its size */
  constructor(what: string) {
    super(`ERR ${what} exceeded by this request: this command was not executed; ask for less at once`);
  }
}

/** The error for a reply that has no room in the answer. */
export function replyTooLarge(): LimitExceeded {
  return new LimitExceeded(`max reply size of ${largestReply} characters`);
}
