export {
  DeadKeyError,
  FingerprintMismatchError,
  InProgressError,
  LeaseLostError,
  RecordCorruptError,
} from "./errors.ts";
export { Idempotency, type IdempotencyOptions, type KeyOptions, type RunOptions } from "./idempotency.ts";
export type { Codec, IdempotencyEvent, Outcome, RunContext } from "./run.ts";
export type { KeyInspection, KeyVote } from "./store.ts";
