import { describe, expect, test } from "vitest";
import { LockHeldError, QuorumError, RedlockError } from "../../../src/errors/errors.ts";
import { type ProblemCode, problem, problemOf, problemResponse } from "../../../src/http/problem.ts";
import {
  DeadKeyError,
  InProgressError,
  LeaseLostError,
  RecordCorruptError,
  ResultUnavailableError,
} from "../../../src/idempotency/index.ts";

// Statuses of the request's own faults, of webhooks that are not genuine, and of held locks: test/http.

describe("the status of a problem, of a webhook's, and when trying again may help", () => {
  test.each<[ProblemCode, number, number, Error, retryAfter?: number]>([
    ["IN_PROGRESS", 409, 503, new InProgressError("k", 12_345), 12_345],
    ["LEASE_LOST", 409, 503, new LeaseLostError("k", "why"), 1_000],
    ["NO_QUORUM", 503, 503, new QuorumError("begin", ["k"], []), 1_000],
    ["RECORD_CORRUPT", 500, 500, new RecordCorruptError("k")],
    ["RESULT_UNAVAILABLE", 410, 200, new ResultUnavailableError("k", "too-large")],
    ["DEAD_KEY", 500, 500, new DeadKeyError("k", 3)],
    ["LOCK_HELD", 423, 423, new LockHeldError(["r"], 1, { retryAfter: 7_000 }), 7_000],
  ])("%s: %i, %i", (code, status, ofWebhook, error, retryAfter) => {
    expect([problem(code).status, problem(code, true).status]).toEqual([status, ofWebhook]);
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
