import type { Context } from "aws-lambda";

/**
 * When the work must be done, in ms since 1970. It leaves 1.5 s before Lambda's timeout, to free or complete the key (one
 * request of at most 1 s) and to answer: Lambda stops all code at its timeout, and runs nothing after the answer.
 */
export function deadlineOf(context: Context): number {
  return Date.now() + context.getRemainingTimeInMillis() - 1_500;
}
