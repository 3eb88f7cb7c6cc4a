import type { UnstoredReason } from "./record.ts";

/** The end of a call of `run()`. Each call reports exactly one, whatever happens, unless its process ends before. */
export interface IdempotencyEvent {
  /**
   * - `executed`: the handler ran, and its result is stored.
   * - `unstored`: the handler ran, but its result is not stored, and `reason` says why.
   * - `failed`: the handler threw, and the key is free.
   * - `lost`: the handler ran longer than its lease, and another run took over.
   * - `replayed`: another run's result was returned.
   * - `omitted`: another run is complete, but its result was not stored, and `reason` says why.
   * - `busy`: another run is under way.
   * - `locked`: another holder has a lock that the run needs.
   * - `mismatch`: the key was used with another fingerprint.
   * - `dead`: too many runs of the key began and did not end.
   * - `corrupt`: the stored value is not a record, or the codec cannot decode it.
   * - `unavailable`: no quorum answered in time, and the handler did not run.
   * - `unguarded`: there was an outage, and with `failOpen` the handler runs without protection. Its end is not reported.
   * - `aborted`: the call ended otherwise: its signal aborted, its deadline had passed, or `backoff` threw, and the handler
   *   did not run. `error` says why.
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
   * Of `unstored`: the error that the codec threw, or that describes its result. Of `aborted` and `failed`: the error that the
   * call throws. Of `unguarded`: why no quorum answered.
   */
  readonly error?: unknown;
  /** ms since the call. */
  readonly elapsed: number;
}

/** Emits the event of a call. */
export type Report = (
  type: IdempotencyEvent["type"],
  details?: Pick<IdempotencyEvent, "reason"> & { readonly error?: unknown },
) => void;
