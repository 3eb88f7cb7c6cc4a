import type { UnstoredReason } from "./record.ts";

/** How a call of `run()` ended: one event for each call, unless it was aborted. */
export interface IdempotencyEvent {
  /**
   * - `executed`: the handler ran, and its result is stored.
   * - `unstored`: the handler ran, but its result is not stored; `reason` says why.
   * - `failed`: the handler threw; the key is free.
   * - `lost`: the handler ran longer than its lease, and another run took over.
   * - `replayed`: another run's result was returned.
   * - `omitted`: another run is complete, but its result was not stored; `reason` says why.
   * - `busy`: another run is under way.
   * - `mismatch`: the key was used with another fingerprint.
   * - `dead`: too many runs of the key began and did not end.
   * - `corrupt`: the stored value is no record, or the codec cannot decode it.
   * - `unavailable`: no quorum answered in time; the handler did not run.
   */
  readonly type:
    | "executed"
    | "unstored"
    | "failed"
    | "lost"
    | "replayed"
    | "busy"
    | "mismatch"
    | "omitted"
    | "dead"
    | "corrupt"
    | "unavailable";
  readonly key: string;
  /** Of `unstored` and `omitted`: see {@link Outcome.unstored}. */
  readonly reason?: UnstoredReason | "no-quorum";
  /** Of `unstored`: the error that the codec threw, or that describes what it returned. */
  readonly error?: unknown;
  /** ms since the call. */
  readonly elapsed: number;
  /** HTTP requests sent for it so far. */
  readonly requests: number;
  /** Redis commands executed for it so far, as Upstash bills them; answers still under way are not in yet. */
  readonly commands: number;
}

/** Emits the event of a call. */
export type Report = (
  type: IdempotencyEvent["type"],
  details?: Pick<IdempotencyEvent, "reason"> & { readonly error?: unknown },
) => void;
