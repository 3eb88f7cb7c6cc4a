import type { HttpEvent } from "../src/http/index.ts";
import { QuorumError } from "../src/index.ts";
import type { WebhookVerificationError, WebhookVerificationReason } from "../src/webhooks/index.ts";
import { failureOf } from "./failure.ts";
import { problemOf } from "./problem.ts";
import type { JournalVote } from "./rows.ts";

/** Why a delivery had no effect, for the journal: without a secret, and without a text of an endpoint. */
export interface Reason {
  /** A sentence for people. */
  readonly text: string;
  readonly votes: readonly JournalVote[] | null;
}

/** What a delivery ended with, other than the handler's response. */
export interface Ending {
  /** The middleware answered with a problem. */
  readonly refusal?: Extract<HttpEvent, { type: "refused" }> | undefined;
  /** The handler, or a step before the middleware, threw it. */
  readonly error?: unknown;
}

const sentences: Partial<Record<NonNullable<Ending["refusal"]>["code"], string>> = {
  BODY_TOO_LARGE: "The body is too large.",
  IN_PROGRESS: "A copy of it was still being handled.",
  LOCK_HELD: "Another delivery about the same entity held the lock.",
  LEASE_LOST: "Another run of it took over.",
  DEAD_KEY: "Its handling was broken off too often.",
  RECORD_CORRUPT: "What is stored for it cannot be read.",
  RESULT_UNAVAILABLE: "It was handled before, and its answer was not stored.",
  ABORTED: "The sender closed the connection.",
};

const verificationSentences: Record<WebhookVerificationReason, string> = {
  "missing-header": "A header that the sender always sets is missing.",
  "malformed-header": "A header does not have the sender's form.",
  "bad-signature": "The signature does not fit: someone else sent it, or it was changed on the way.",
  "outside-tolerance": "It was signed too long ago, or in the future.",
};

/**
 * Why a delivery was busy, refused or failed; undefined if it was neither.
 *
 * @example
 * reasonOf({ refusal: { type: "refused", code: "LOCK_HELD", … } })?.text; // "Another delivery about …"
 */
export function reasonOf({ refusal, error }: Ending): Reason | undefined {
  const thrown = refusal?.error ?? error;
  if (thrown instanceof QuorumError) return noQuorum(thrown);
  if (refusal) return { text: textOf(refusal), votes: null };
  if (error === undefined) return undefined;
  const { title, detail, status, hint } = problemOf(error);
  if (status === 503) return { text: `${title}.`, votes: null };
  if (status < 500 || hint !== undefined) return { text: `${title}: ${detail}.`, votes: null };
  // The cause of any other error is for the operator alone (problem.ts).
  return { text: "The handler failed: the Worker's log has the cause.", votes: null };
}

function noQuorum({ votes }: QuorumError): Reason {
  const failed = votes.filter(({ outcome }) => outcome === "error").length;
  const text =
    failed === 0
      ? "No quorum: the endpoints' answers came too late."
      : `No quorum: ${failed} of ${votes.length} endpoints failed.`;
  return {
    text,
    votes: votes.map(({ endpoint, outcome, cause }) => ({
      endpoint,
      outcome,
      ...(cause && { failure: failureOf(cause) }),
    })),
  };
}

function textOf({ code, error }: NonNullable<Ending["refusal"]>): string {
  if (code === "WEBHOOK_INVALID") {
    return verificationSentences[(error as WebhookVerificationError).reason];
  }
  return sentences[code] ?? `Refused: ${code}.`;
}
