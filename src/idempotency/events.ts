import type { UnstoredReason } from "./record.ts";

/** The end of a call of `run()`. Each call reports exactly one. */
export interface IdempotencyEvent {
  /**
   * - `executed`: the handler ran, and its result is stored.
   * - `unstored`: the handler ran, but its result is not stored, because of `reason`.
   * - `failed`: the handler threw, and the key is free.
   * - `lost`: the handler outlived its lease, and another run took over.
   * - `replayed`: another run's result was returned.
   * - `omitted`: another run is complete, but its result was not stored, because of `reason`.
   * - `busy`: another run is running.
   * - `locked`: another holder has the run's lock.
   * - `mismatch`: the key was used with another fingerprint.
   * - `dead`: too many runs of the key did not end.
   * - `corrupt`: the stored value is not a record, or cannot be decoded.
   * - `unavailable`: no quorum answered in time, and the handler did not run.
   * - `unguarded`: because of `failOpen`, the handler runs without protection. Its end is not reported.
   * - `aborted`: the handler did not run, because of the signal, the deadline or `backoff`.
   */
  readonly type:
    | "executed"
    | "unstored"
    | "failed"
    | "lost"
    | "replayed"
    | "busy"
    | "locked"
    | "mismatch"
    | "omitted"
    | "dead"
    | "corrupt"
    | "unavailable"
    | "unguarded"
    | "aborted";
  readonly key: string;
  /** Of `unstored` and `omitted`: see {@link Outcome.unstored}. */
  readonly reason?: UnstoredReason | "no-quorum";
  readonly error?: unknown;
  /** ms since the call. */
  readonly elapsed: number;
}

export type Report = (
  type: IdempotencyEvent["type"],
  details?: Pick<IdempotencyEvent, "reason"> & { readonly error?: unknown },
) => void;
