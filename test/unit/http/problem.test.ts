import { describe, expect, test } from "vitest";
import { LockHeldError, QuorumError, RedlockError } from "../../../src/errors.ts";
import { type ProblemCode, problem, problemOf, problemResponse } from "../../../src/http/problem.ts";
import {
  DeadKeyError,
  FingerprintMismatchError,
  InProgressError,
  LeaseLostError,
  RecordCorruptError,
  ResultUnavailableError,
} from "../../../src/idempotency/index.ts";
import { WebhookVerificationError, type WebhookVerificationReason } from "../../../src/webhooks/index.ts";

describe("the status of a problem, and of a webhook's", () => {
  test.each<[ProblemCode, number, number]>([
    ["KEY_MISSING", 400, 400],
    ["KEY_INVALID", 400, 400],
    ["BODY_TOO_LARGE", 413, 413],
    ["WEBHOOK_INVALID", 401, 401],
    ["IN_PROGRESS", 409, 503],
    ["FINGERPRINT_MISMATCH", 422, 422],
    ["LEASE_LOST", 409, 503],
    ["NO_QUORUM", 503, 503],
    ["RECORD_CORRUPT", 500, 500],
    ["RESULT_UNAVAILABLE", 410, 200],
    ["DEAD_KEY", 500, 500],
    ["LOCK_HELD", 423, 423],
    ["ABORTED", 499, 499],
  ])("%s: %i, %i", (code, status, webhook) => {
    expect(problem(code)).toMatchObject({ code, status, retryAfter: undefined });
    expect(problem(code, true).status).toBe(webhook);
    expect(problem(code).title).toMatch(/\w/);
  });
});

describe("the problem of an error", () => {
  const held = new LockHeldError(["r"], 1, 7_000);
  test.each<[Error, ProblemCode, retryAfter: number | undefined]>([
    [new InProgressError("k", 12_345), "IN_PROGRESS", 12_345],
    [new LeaseLostError("k", "why"), "LEASE_LOST", 1_000],
    [new QuorumError("begin", ["k"], []), "NO_QUORUM", 1_000],
    [held, "LOCK_HELD", 7_000],
    [new FingerprintMismatchError("k"), "FINGERPRINT_MISMATCH", undefined],
    [new RecordCorruptError("k"), "RECORD_CORRUPT", undefined],
    [new ResultUnavailableError("k", "too-large"), "RESULT_UNAVAILABLE", undefined],
    [new DeadKeyError("k", 3), "DEAD_KEY", undefined],
  ])("%s is %s, with Retry-After where trying again may help", (error, code, retryAfter) => {
    expect(problemOf(error)).toEqual(problem(code, false, retryAfter));
    expect(problemOf(error, true)).toEqual(problem(code, true, retryAfter));
  });

  test.each<[WebhookVerificationReason, number]>([
    ["missing-header", 400],
    ["malformed-header", 400],
    ["bad-signature", 401],
    ["outside-tolerance", 401],
  ])("a delivery with %s is %i", (reason, status) => {
    const error = new WebhookVerificationError("github", reason, "why");
    expect(problemOf(error, true)).toMatchObject({ code: "WEBHOOK_INVALID", status });
  });

  test("there is none of other errors", () => {
    class OtherError extends RedlockError {}
    for (const error of [new Error("IN_PROGRESS"), undefined, new OtherError("LOCK_LOST", "lost")]) {
      expect(problemOf(error)).toBe(undefined);
    }
  });
});

describe("a problem as a response", () => {
  test.each([
    [undefined, null],
    [0, "1"],
    [1, "1"],
    [1_000, "1"],
    [1_001, "2"],
    [59_999, "60"],
  ])("has %s ms as whole seconds, rounded up, and at least one: %s", (retryAfter, seconds) => {
    const response = problemResponse(problem("LOCK_HELD", false, retryAfter));
    expect(response.headers.get("retry-after")).toBe(seconds);
  });
});
