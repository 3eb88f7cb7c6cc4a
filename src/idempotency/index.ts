export { FingerprintMismatchError, InProgressError, LeaseLostError, RecordCorruptError } from "./errors.ts";
export { Idempotency, type IdempotencyOptions, type RunOptions } from "./idempotency.ts";
export type { Codec, IdempotencyEvent, Outcome, RunContext } from "./run.ts";
