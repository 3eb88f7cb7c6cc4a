import type { Reply } from "../twins/twin.ts";
/** The most characters of a reply, and of all replies to one request. */
export declare const largestReply = 10000000;
/** The most characters of values that are read and written for a request: some seconds. */
export declare const mostWork = 1000000000;
/** Why a request has too many commands or words; undefined: it is within the limits. */
export declare function whyTooLong(commands: readonly (readonly unknown[])[]): string | undefined;
/** How many characters a reply has, without those of JSON. */
export declare function sizeOf(reply: Reply): number;
/**
 * A command asks for more than the limits of its request leave: it is undone, and those after it are not executed. No
 * `ReplyError`, which a script may survive.
 */
export declare class LimitExceeded extends Error {
  /** @param what the limit, with its size */
  constructor(what: string);
}
/** The error for a reply that has no room in the answer. */
export declare function replyTooLarge(): LimitExceeded;
