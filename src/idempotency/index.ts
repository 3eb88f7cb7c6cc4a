export {
  DeadKeyError,
  FingerprintMismatchError,
  InProgressError,
  LeaseLostError,
  RecordCorruptError,
  ResultUnavailableError,
} from "./errors.ts";
export { Idempotency, type IdempotencyOptions, type KeyOptions, type RunOptions } from "./idempotency.ts";
export type { UnstoredReason } from "./record.ts";
export type { Codec, JsonResult, JsonValue } from "./result.ts";
export type { IdempotencyEvent, Outcome, RunContext } from "./run.ts";
export type { KeyInspection, KeyVote } from "./store.ts";
