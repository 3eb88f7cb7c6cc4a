import { isRedlockError } from "../errors/errors.ts";

/** Why a request was refused: the `code` of an error of this package, or a fault of the request itself. */
export type ProblemCode =
  | "KEY_MISSING"
  | "KEY_INVALID"
  | "BODY_TOO_LARGE"
  | "WEBHOOK_INVALID"
  | "IN_PROGRESS"
  | "FINGERPRINT_MISMATCH"
  | "HANDLER_MISMATCH"
  | "LEASE_LOST"
  | "NO_QUORUM"
  | "RECORD_CORRUPT"
  | "RESULT_UNAVAILABLE"
  | "DEAD_KEY"
  | "LOCK_HELD"
  | "ABORTED";

/** A refusal, as its body describes it (RFC 9457). */
export interface Problem {
  readonly status: number;
  /** For programs. */
  readonly code: ProblemCode;
  /** For people. */
  readonly title: string;
  /** When to try again, in ms. It is sent as `Retry-After` in whole seconds, at least one. */
  readonly retryAfter?: number | undefined;
}

/** Status and title by code. The last status is for webhooks, where it differs. */
const problems: Record<ProblemCode, readonly [status: number, title: string, webhook?: number]> = {
  KEY_MISSING: [400, "The idempotency key is missing"],
  KEY_INVALID: [
    400,
    "The idempotency key must be one of 1 to 255 visible ASCII characters, and not undefined or null; with a comma: quoted",
  ],
  BODY_TOO_LARGE: [413, "The body is too large"],
  // For a missing or malformed header, too: Shopify and Discord accept an app only if it answers 401.
  WEBHOOK_INVALID: [401, "The delivery is not genuine"],
  // For webhooks never 2xx: if the first run failed afterwards, the sender would not send the event again. Nor 4xx,
  // after which some senders give up.
  IN_PROGRESS: [409, "A request with this key is being handled", 503],
  FINGERPRINT_MISMATCH: [422, "The key was used before with a different request"],
  HANDLER_MISMATCH: [500, "The delivery was handled at another path: give each route a `handler` of its own"],
  LEASE_LOST: [409, "Another request with this key took over", 503],
  NO_QUORUM: [503, "The store cannot be reached"],
  RECORD_CORRUPT: [500, "What is stored for this key cannot be read"],
  // No status after which clients retry: they would do so for the whole retention. A webhook's sender only needs to know
  // that the event was handled.
  RESULT_UNAVAILABLE: [410, "The request was handled before, but its response was not stored", 200],
  DEAD_KEY: [500, "Handling this key was broken off too often"],
  LOCK_HELD: [423, "The resource is locked"],
  // The status that nginx logs for it, because the client does not read the answer.
  ABORTED: [499, "The client has gone"],
};

/** The problems after which trying again may help. */
const mayChangeSoon: readonly ProblemCode[] = ["IN_PROGRESS", "LEASE_LOST", "NO_QUORUM", "LOCK_HELD"];

/** The problem with this code. */
export function problem(code: ProblemCode, webhook = false, retryAfter?: number): Problem {
  const [status, title, forWebhook = status] = problems[code];
  return { status: webhook ? forWebhook : status, code, title, retryAfter };
}

/** The problem that an error of this package means to the client, or undefined for every other error. */
export function problemOf(error: unknown, webhook = false): Problem | undefined {
  // By code, not by class: the error may come from another copy of this package.
  if (!isRedlockError(error) || !Object.hasOwn(problems, error.code)) return undefined;
  const code = error.code as ProblemCode;
  const { retryAfter = 1_000 } = error as { retryAfter?: number | undefined };
  return problem(code, webhook, mayChangeSoon.includes(code) ? retryAfter : undefined);
}

/** A problem as a response. It does not mention endpoints: those concern the operator only. */
export function problemResponse({ status, code, title, retryAfter }: Problem): Response {
  return new Response(JSON.stringify({ title, status, code }), {
    status,
    headers: {
      "content-type": "application/problem+json",
      ...(retryAfter !== undefined && { "retry-after": `${Math.max(1, Math.ceil(retryAfter / 1_000))}` }),
    },
  });
}
