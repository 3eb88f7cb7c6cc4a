import type { Context } from "aws-lambda";

/**
 * When to be done, in ms since 1970. What is left after that frees or completes the key, one request of at most
 * 1 s, and answers: Lambda keeps nothing alive after the answer, and kills what is under way at its timeout.
 */
export function deadlineOf(context: Context): number {
  return Date.now() + context.getRemainingTimeInMillis() - 1_500;
}
