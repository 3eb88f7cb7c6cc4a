import { describe, expect, test } from "vitest";
import { LockHeldError, QuorumError, RedlockError } from "../../../src/errors/errors.ts";
import { type ProblemCode, problem, problemOf, problemResponse } from "../../../src/http/problem.ts";
import {
  DeadKeyError,
  FingerprintMismatchError,
  InProgressError,
  LeaseLostError,
  RecordCorruptError,
  ResultUnavailableError,
} from "../../../src/idempotency/index.ts";
import { WebhookVerificationError } from "../../../src/webhooks/index.ts";

const notGenuine = (reason: "bad-signature" | "outside-tolerance" | "missing-header" | "malformed-header") =>
  new WebhookVerificationError("github", reason, "why");

describe("the status of a problem, of a webhook's, and when trying again may help", () => {
  test.each<[ProblemCode, number, number, Error?, retryAfter?: number]>([
    ["KEY_MISSING", 400, 400],
    ["KEY_INVALID", 400, 400],
    ["BODY_TOO_LARGE", 413, 413],
    ["HANDLER_MISMATCH", 500, 500],
    ["ABORTED", 499, 499],
    ["WEBHOOK_INVALID", 401, 401, notGenuine("bad-signature")],
    ["WEBHOOK_INVALID", 401, 401, notGenuine("outside-tolerance")],
    ["WEBHOOK_INVALID", 401, 401, notGenuine("missing-header")],
    ["WEBHOOK_INVALID", 401, 401, notGenuine("malformed-header")],
    ["IN_PROGRESS", 409, 503, new InProgressError("k", 12_345), 12_345],
    ["FINGERPRINT_MISMATCH", 422, 422, new FingerprintMismatchError("k")],
    ["LEASE_LOST", 409, 503, new LeaseLostError("k", "why"), 1_000],
    ["NO_QUORUM", 503, 503, new QuorumError("begin", ["k"], []), 1_000],
    ["RECORD_CORRUPT", 500, 500, new RecordCorruptError("k")],
    ["RESULT_UNAVAILABLE", 410, 200, new ResultUnavailableError("k", "too-large")],
    ["DEAD_KEY", 500, 500, new DeadKeyError("k", 3)],
    ["LOCK_HELD", 423, 423, new LockHeldError(["r"], 1, { retryAfter: 7_000 }), 7_000],
  ])("%s: %i, %i", (code, status, ofWebhook, error, retryAfter) => {
    expect(problem(code)).toMatchObject({
      code,
      status,
      retryAfter: undefined,
      title: expect.stringMatching(/\w/),
    });
    expect(problem(code, true).status).toBe(ofWebhook);
    if (!error) return;
    for (const webhook of [false, true])
      expect(problemOf(error, webhook)).toEqual(problem(code, webhook, retryAfter));
  });

  test("other errors are none", () => {
    class OtherError extends RedlockError {}
    for (const error of [new Error("IN_PROGRESS"), undefined, new OtherError("LOCK_LOST", "lost")]) {
      expect(problemOf(error)).toBe(undefined);
    }
  });
});

test.each([
  [undefined, null],
  [0, "1"],
  [1_000, "1"],
  [1_001, "2"],
  [59_999, "60"],
])("Retry-After has %s ms as whole seconds, rounded up, and at least one: %s", (retryAfter, seconds) => {
  const response = problemResponse(problem("LOCK_HELD", false, retryAfter));
  expect(response.headers.get("retry-after")).toBe(seconds);
});
