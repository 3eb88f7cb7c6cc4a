import { RedlockError } from "../errors/errors.ts";
import type { UnstoredReason } from "./record.ts";

/** Another run of this key is running. */
export class InProgressError extends RedlockError {
  readonly key: string;
  /** ms until the other run's lease ends, unless that run renews it. */
  readonly retryAfter: number;

  constructor(key: string, retryAfter: number) {
    super(
      "IN_PROGRESS",
      `a run of ${JSON.stringify(key)} is under way, and its lease ends in ${Math.round(retryAfter)} ms unless the run extends it; to get its result, set wait`,
    );
    this.name = "InProgressError";
    this.key = key;
    this.retryAfter = retryAfter;
  }
}

/** The key was used before with a different request. */
export class FingerprintMismatchError extends RedlockError {
  readonly key: string;

  constructor(key: string) {
    super("FINGERPRINT_MISMATCH", `${JSON.stringify(key)} was used before with a different fingerprint`);
    this.name = "FingerprintMismatchError";
    this.key = key;
  }
}

/** The run outlived its lease and another run took over. Its result was not stored. */
export class LeaseLostError extends RedlockError {
  readonly key: string;

  constructor(key: string, why: string) {
    super("LEASE_LOST", `the lease on ${JSON.stringify(key)} is lost: ${why}`);
    this.name = "LeaseLostError";
    this.key = key;
  }
}

/** `maxAttempts` runs of the key began and did not end. No further run may begin. */
export class DeadKeyError extends RedlockError {
  readonly key: string;
  readonly attempts: number;

  constructor(key: string, attempts: number) {
    super("DEAD_KEY", `${JSON.stringify(key)} is dead: ${attempts} runs of it did not end`);
    this.name = "DeadKeyError";
    this.key = key;
    this.attempts = attempts;
  }
}

/**
 * The key's value is no record of this library, or the codec cannot decode its result (then `cause` is the codec's
 * error). The handler did not run, and nothing was changed.
 */
export class RecordCorruptError extends RedlockError {
  readonly key: string;

  constructor(key: string, options?: { readonly cause?: unknown }) {
    super(
      "RECORD_CORRUPT",
      `what is stored for ${JSON.stringify(key)} is not an idempotency record`,
      options,
    );
    this.name = "RecordCorruptError";
    this.key = key;
  }
}

/**
 * The key is complete, but its result could not be stored. Do not repeat the effect: it has happened. The first caller
 * got the value, with `outcome.unstored`.
 *
 * @example
 * if (error instanceof ResultUnavailableError) return await findPayment(key); // it was made: look it up
 */
export class ResultUnavailableError extends RedlockError {
  readonly key: string;
  readonly reason: UnstoredReason;

  constructor(key: string, reason: UnstoredReason) {
    super(
      "RESULT_UNAVAILABLE",
      `${JSON.stringify(key)} is complete, but its result was not stored: ${reason}`,
    );
    this.name = "ResultUnavailableError";
    this.key = key;
    this.reason = reason;
  }
}
