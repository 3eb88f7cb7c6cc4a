import type { UnstoredReason } from "./record.ts";

/** The end of a call of `run()`. Each call reports exactly one, unless its process ends before. */
export interface IdempotencyEvent {
  /**
   * - `executed`: the handler ran, and its result is stored.
   * - `unstored`: the handler ran, but its result is not stored, because of `reason`.
   * - `failed`: the handler threw, and the key is free.
   * - `lost`: the handler ran longer than its lease, and another run took over.
   * - `replayed`: another run's result was returned.
   * - `omitted`: another run is complete, but its result was not stored, because of `reason`.
   * - `busy`: another run is running.
   * - `locked`: another holder has the run's lock.
   * - `mismatch`: the key was used with another fingerprint.
   * - `dead`: too many runs of the key began and did not end.
   * - `corrupt`: the stored value is not a record, or the codec cannot decode it.
   * - `unavailable`: no quorum answered in time, and the handler did not run.
   * - `unguarded`: because of an outage and `failOpen`, the handler runs without protection. Its end is not reported.
   * - `aborted`: the handler did not run, because the signal aborted, the deadline had passed, or `backoff` threw.
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
  /**
   * Of `unstored`: the codec's error. Of `aborted` and `failed`: the call's error. Of `unguarded`: why no quorum
   * answered.
   */
  readonly error?: unknown;
  /** ms since the call. */
  readonly elapsed: number;
}

export type Report = (
  type: IdempotencyEvent["type"],
  details?: Pick<IdempotencyEvent, "reason"> & { readonly error?: unknown },
) => void;
