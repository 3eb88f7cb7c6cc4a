import type { Reply } from "../twins/twin.ts";
import { CommandError } from "./command-error.ts";

/** The most characters of a reply, and of all replies to one request: an object has 128 MB of memory. */
export const largestReply = 10_000_000;

/** How many characters a reply has, without those of JSON. */
export function sizeOf(reply: Reply): number {
  if (typeof reply === "string") return reply.length;
  return Array.isArray(reply) ? reply.reduce((sum, part) => sum + sizeOf(part), 0) : 0;
}

/** The error for a command whose reply has no room in the answer. */
export class ReplyTooLarge extends CommandError {
  constructor() {
    super(
      `ERR max reply size of ${largestReply} characters exceeded by this request: this command was not executed; ask for less at once`,
    );
  }
}
