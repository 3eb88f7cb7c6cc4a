/**
 * Run a function once per key, and give later calls its stored result.
 *
 * @module redlock-edge/idempotency
 */
export { type CanonicalOptions, canonicalKey } from "./canonical.ts";
export {
  DeadKeyError,
  FingerprintMismatchError,
  InProgressError,
  LeaseLostError,
  RecordCorruptError,
  ResultUnavailableError,
} from "./errors.ts";
export type { IdempotencyEvent } from "./events.ts";
export { forgetKey } from "./forget.ts";
export {
  Idempotency,
  type IdempotencyOptions,
  type LockedRunOptions,
  type RunOptions,
} from "./idempotency.ts";
export { inspectKey, type KeyInspection, type KeyOptions, type KeyVote } from "./inspect.ts";
export type { UnstoredReason } from "./record.ts";
export type { Codec, JsonResult, JsonValue } from "./result.ts";
export type { LockedRunContext, Outcome, RunContext } from "./run.ts";
export { type FlightContext, type SingleFlightOptions, singleFlight } from "./single-flight.ts";
