import { isRedlockError } from "../errors/errors.ts";

/** Why a request was refused: an error's `code`, or a fault of the request itself. */
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

/** RFC 9457. */
export interface Problem {
  readonly status: number;
  readonly code: ProblemCode;
  readonly title: string;
  /** In ms. */
  readonly retryAfter?: number | undefined;
}

/** The last status is for webhooks, if it differs. */
const problems: Record<ProblemCode, readonly [status: number, title: string, webhook?: number]> = {
  KEY_MISSING: [400, "The idempotency key is missing"],
  KEY_INVALID: [
    400,
    "The idempotency key must be one of 1 to 255 visible ASCII characters, and not undefined or null; with a comma: quoted",
  ],
  BODY_TOO_LARGE: [413, "The body is too large"],
  // Even for a missing or malformed header: Shopify and Discord accept an app only if it answers 401.
  WEBHOOK_INVALID: [401, "The delivery is not genuine"],
  // Never 2xx, because after a failure of the first run the sender would not send the event again. Nor 4xx, after which
  // some senders give up.
  IN_PROGRESS: [409, "A request with this key is being handled", 503],
  FINGERPRINT_MISMATCH: [422, "The key was used before with a different request"],
  HANDLER_MISMATCH: [500, "The delivery was handled at another path: give each route a `handler` of its own"],
  LEASE_LOST: [409, "Another request with this key took over", 503],
  NO_QUORUM: [503, "The store cannot be reached"],
  RECORD_CORRUPT: [500, "What is stored for this key cannot be read"],
  // Clients would retry other statuses for the whole retention. A webhook's sender only needs to know that it was
  // handled.
  RESULT_UNAVAILABLE: [410, "The request was handled before, but its response was not stored", 200],
  DEAD_KEY: [500, "Handling this key was broken off too often"],
  LOCK_HELD: [423, "The resource is locked"],
  // nginx's status for it.
  ABORTED: [499, "The client has gone"],
};

const mayChangeSoon: readonly ProblemCode[] = ["IN_PROGRESS", "LEASE_LOST", "NO_QUORUM", "LOCK_HELD"];

export function problem(code: ProblemCode, webhook = false, retryAfter?: number): Problem {
  const [status, title, forWebhook = status] = problems[code];
  return { status: webhook ? forWebhook : status, code, title, retryAfter };
}

export function problemOf(error: unknown, webhook = false): Problem | undefined {
  // By code, because the error may come from another copy of this package.
  if (!isRedlockError(error) || !Object.hasOwn(problems, error.code)) return undefined;
  const code = error.code as ProblemCode;
  const { retryAfter = 1_000 } = error as { retryAfter?: number | undefined };
  return problem(code, webhook, mayChangeSoon.includes(code) ? retryAfter : undefined);
}

/** Endpoints are the operator's business. */
export function problemResponse({ status, code, title, retryAfter }: Problem): Response {
  return new Response(JSON.stringify({ title, status, code }), {
    status,
    headers: {
      "content-type": "application/problem+json",
      ...(retryAfter !== undefined && { "retry-after": `${Math.max(1, Math.ceil(retryAfter / 1_000))}` }),
    },
  });
}
