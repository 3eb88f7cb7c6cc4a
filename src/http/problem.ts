import { isRedlockError } from "../errors.ts";

/**
 * What a request was refused for: the `code` of this package's errors, or what is wrong with the request itself.
 */
export type ProblemCode =
  | "KEY_MISSING"
  | "KEY_INVALID"
  | "BODY_TOO_LARGE"
  | "WEBHOOK_INVALID"
  | "IN_PROGRESS"
  | "FINGERPRINT_MISMATCH"
  | "LEASE_LOST"
  | "NO_QUORUM"
  | "RECORD_CORRUPT"
  | "RESULT_UNAVAILABLE"
  | "DEAD_KEY"
  | "LOCK_HELD"
  | "ABORTED";

/** A refusal, as its body tells it (RFC 9457). */
export interface Problem {
  readonly status: number;
  /** For programs. */
  readonly code: ProblemCode;
  /** For people. */
  readonly title: string;
  /** When to ask again, in ms; sent as `Retry-After` in whole seconds, at least one. */
  readonly retryAfter?: number | undefined;
}

/** Status and title by code; where a webhook's sender is told something else, its status is the last. */
const problems: Record<ProblemCode, readonly [status: number, title: string, webhook?: number]> = {
  KEY_MISSING: [400, "The idempotency key is missing"],
  KEY_INVALID: [
    400,
    "The idempotency key must be one of 1 to 255 visible ASCII characters; with a comma: quoted",
  ],
  BODY_TOO_LARGE: [413, "The body is too large"],
  WEBHOOK_INVALID: [401, "The delivery is not genuine"],
  // Never 2xx: if the first run failed after that, nobody would send the event again. Nor 4xx, after which some
  // senders give up.
  IN_PROGRESS: [409, "A request with this key is being handled", 503],
  FINGERPRINT_MISMATCH: [422, "The key was used before with a different request"],
  LEASE_LOST: [409, "Another request with this key took over", 503],
  NO_QUORUM: [503, "The store cannot be reached"],
  RECORD_CORRUPT: [500, "What is stored for this key cannot be read"],
  // No status after which clients try again: they would for as long as the key is kept. A webhook's sender only
  // needs to know that it was done.
  RESULT_UNAVAILABLE: [410, "The request was handled before, but its response was not stored", 200],
  DEAD_KEY: [500, "Handling this key was broken off too often"],
  LOCK_HELD: [423, "The resource is locked"],
  // What nginx logs for it; nobody reads the answer.
  ABORTED: [499, "The client has gone"],
};

/** The refusal with this code. */
export function problem(code: ProblemCode, webhook = false, retryAfter?: number): Problem {
  const [status, title, forWebhook = status] = problems[code];
  return { status: webhook ? forWebhook : status, code, title, retryAfter };
}

/**
 * What an error of this package means to the client; undefined for every other error. A webhook's sender gets no
 * 2xx for anything but success.
 */
export function problemOf(error: unknown, webhook = false): Problem | undefined {
  if (!isRedlockError(error)) return undefined;
  const { retryAfter = 1_000, reason = "" } = error as { retryAfter?: number | undefined; reason?: string };
  // By code, not by class: it may come from another copy of this package.
  const { code } = error;
  switch (code) {
    case "IN_PROGRESS":
    case "LEASE_LOST":
    case "NO_QUORUM":
    case "LOCK_HELD":
      return problem(code, webhook, retryAfter);
    case "FINGERPRINT_MISMATCH":
    case "RECORD_CORRUPT":
    case "RESULT_UNAVAILABLE":
    case "DEAD_KEY":
      return problem(code, webhook);
    case "WEBHOOK_INVALID":
      // Not forged, but not from this sender at all.
      return { ...problem(code), ...(/header$/.test(reason) && { status: 400 }) };
    default:
      return undefined;
  }
}

/** A refusal as a response. It tells nothing of endpoints, which are the operator's business. */
export function problemResponse({ status, code, title, retryAfter }: Problem): Response {
  return new Response(JSON.stringify({ title, status, code }), {
    status,
    headers: {
      "content-type": "application/problem+json",
      ...(retryAfter !== undefined && { "retry-after": `${Math.max(1, Math.ceil(retryAfter / 1_000))}` }),
    },
  });
}
