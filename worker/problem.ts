import { StaleFenceError } from "../src/inbox/index.ts";
import { QuorumError } from "../src/index.ts";
import { BindingError } from "./bindings.ts";
import { EventError } from "./event.ts";
import type { Outcome } from "./rows.ts";
import { NotSetUpError } from "./senders.ts";

/** The answer to a delivery that had no effect. All fields but `outcome` and `retryAfter` become the body. */
export interface Problem {
  /** For the journal. */
  readonly outcome: Outcome;
  readonly status: number;
  readonly title: string;
  readonly detail: string;
  /** What the reader can do about it. */
  readonly hint?: string;
  /** When to try again, in seconds. */
  readonly retryAfter?: number;
}

/**
 * Maps an error of the Worker to the answer for the sender. Errors of the request, and of the run of its key, have been
 * answered by the middleware. No error is answered with 2xx: the sender would never send the event again.
 *
 * @example
 * problemOf(new StaleFenceError("octo/demo#42", 7)); // { outcome: "failed", status: 503, retryAfter: 1, … }
 */
export function problemOf(error: unknown): Problem {
  if (error instanceof NotSetUpError) {
    const { message: detail, hint } = error;
    return { outcome: "refused", status: 501, title: "This sender is not set up", detail, hint };
  }
  if (error instanceof EventError) {
    return { outcome: "refused", status: 400, title: "Not understood", detail: error.message };
  }
  if (error instanceof BindingError) {
    const { message: detail, hint } = error;
    return { outcome: "failed", status: 500, title: "The Worker is not set up", detail, hint };
  }
  if (error instanceof QuorumError) return unavailable("Too few Redis endpoints answered");
  if (error instanceof StaleFenceError) {
    return unavailable("Someone else took over while this was being handled");
  }
  if (error instanceof Error && error.message.includes("no such table")) {
    return {
      outcome: "failed",
      status: 500,
      title: "The Worker is not set up",
      detail: "the database lacks a table",
      hint: "Run `npx wrangler d1 execute redlock-edge --remote --file worker/schema.sql`.",
    };
  }
  // The cause goes into the log (index.ts, webhook.ts), not to anyone who can send a request.
  return {
    outcome: "failed",
    status: 500,
    title: "The event could not be handled",
    detail: "Nothing of it is kept: send it again.",
  };
}

/**
 * A problem as strangers may see it: what has a hint says how the Worker is set up.
 *
 * @example
 * return problemResponse(withoutSetUp(problemOf(error)));
 */
export function withoutSetUp(problem: Problem): Problem {
  if (problem.hint === undefined) return problem;
  const { hint: _, ...rest } = problem;
  return { ...rest, detail: "The Worker's log and its page say what is missing." };
}

/**
 * A problem as a response (RFC 9457).
 *
 * @example
 * return problemResponse({ status: 404, title: "Not found", detail: "there is nothing at /x" });
 */
export function problemResponse(
  problem: Omit<Problem, "outcome">,
  headers?: Readonly<Record<string, string>>,
): Response {
  const { status, title, detail, hint, retryAfter } = problem;
  return new Response(`${JSON.stringify({ type: "about:blank", status, title, detail, hint })}\n`, {
    status,
    headers: {
      ...headers,
      "content-type": "application/problem+json",
      ...(retryAfter !== undefined && { "retry-after": String(retryAfter) }),
    },
  });
}

function unavailable(title: string): Problem {
  return { outcome: "failed", status: 503, title, detail: "Send it again in 1 s.", retryAfter: 1 };
}
