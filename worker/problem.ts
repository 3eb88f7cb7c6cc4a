import { InProgressError, LeaseLostError } from "../src/idempotency/index.ts";
import { LockHeldError, LockLostError, QuorumError } from "../src/index.ts";
import { WebhookVerificationError } from "../src/webhooks/index.ts";
import { BindingError } from "./bindings.ts";
import { StaleFenceError } from "./effect.ts";
import { EventError } from "./event.ts";
import type { Outcome } from "./page.ts";

/** What to answer to a delivery that came to nothing. Its fields beside `outcome` become the body. */
export interface Problem {
  /** For the journal. */
  readonly outcome: Outcome;
  readonly status: number;
  readonly title: string;
  readonly detail: string;
  /** What to do about it, where the reader can do something. */
  readonly hint?: string;
  /** When to try again, in seconds. */
  readonly retryAfter?: number;
}

/**
 * What an error means to the sender of a webhook. Nothing but success is answered with 2xx, duplicates of a
 * run that is not over included: were they told that all is well and the run then failed, nobody would ever
 * send the event again.
 *
 * @example
 * problemOf(new InProgressError("msg_1", 2_500)); // { outcome: "busy", status: 503, retryAfter: 3, … }
 */
export function problemOf(error: unknown): Problem {
  if (error instanceof WebhookVerificationError) {
    const malformed = error.reason === "missing-header" || error.reason === "malformed-header";
    return {
      outcome: "refused",
      status: malformed ? 400 : 401,
      title: malformed ? "Not a webhook of this sender" : "Not genuine",
      detail: error.message,
    };
  }
  if (error instanceof EventError) {
    return { outcome: "refused", status: 400, title: "Not understood", detail: error.message };
  }
  if (error instanceof BindingError) {
    const { message: detail, hint } = error;
    return { outcome: "failed", status: 500, title: "The Worker is not set up", detail, hint };
  }
  if (error instanceof InProgressError) {
    return unavailable("busy", "This delivery is being handled", error.retryAfter);
  }
  if (error instanceof LockHeldError) {
    return unavailable("busy", "Another event of the same entity is being handled", error.retryAfter);
  }
  if (error instanceof QuorumError) return unavailable("failed", "Too few Redis endpoints answered");
  if (error instanceof LeaseLostError || error instanceof LockLostError || error instanceof StaleFenceError) {
    return unavailable("failed", "Someone else took over while this was being handled");
  }
  if (error instanceof Error && error.message.includes("no such table")) {
    return {
      outcome: "failed",
      status: 500,
      title: "The Worker is not set up",
      detail: "the database has no tables",
      hint: "Run `npx wrangler d1 execute redlock-edge --remote --file worker/schema.sql`.",
    };
  }
  // What went wrong inside is for the log (webhook.ts), not for whoever can send a request.
  return {
    outcome: "failed",
    status: 500,
    title: "The event could not be handled",
    detail: "Nothing of it is kept: send it again.",
  };
}

/**
 * A problem as a response (RFC 9457).
 *
 * @example
 * return problemResponse({ status: 404, title: "Not found", detail: "there is nothing at /x" });
 */
export function problemResponse(problem: Omit<Problem, "outcome">): Response {
  const { status, title, detail, hint, retryAfter } = problem;
  return new Response(`${JSON.stringify({ type: "about:blank", status, title, detail, hint })}\n`, {
    status,
    headers: {
      "content-type": "application/problem+json",
      ...(retryAfter !== undefined && { "retry-after": String(retryAfter) }),
    },
  });
}

function unavailable(outcome: Outcome, title: string, retryAfter = 1_000): Problem {
  const seconds = Math.max(1, Math.ceil(retryAfter / 1_000));
  return { outcome, status: 503, title, detail: `Send it again in ${seconds} s.`, retryAfter: seconds };
}
