import type { UnstoredReason } from "./record.ts";

/**
 * The beginning or the end of a call of `run()`. Each call that begins has exactly one end, whatever happens, unless its
 * process ends.
 */
export interface IdempotencyEvent {
  /**
   * - `called`: the call begins; nothing has been sent.
   *
   * Its end is one of the others:
   *
   * - `executed`: the handler ran, and its result is stored.
   * - `unstored`: the handler ran, but its result is not stored; `reason` says why.
   * - `failed`: the handler threw; the key is free.
   * - `lost`: the handler ran longer than its lease, and another run took over.
   * - `replayed`: another run's result was returned.
   * - `omitted`: another run is complete, but its result was not stored; `reason` says why.
   * - `busy`: another run is under way.
   * - `locked`: another holder has a lock that the run needs.
   * - `mismatch`: the key was used with another fingerprint.
   * - `dead`: too many runs of the key began and did not end.
   * - `corrupt`: the stored value is not a record, or the codec cannot decode it.
   * - `unavailable`: no quorum answered in time; the handler did not run.
   * - `aborted`: the call ended otherwise: its signal aborted, its deadline had passed, or `backoff` threw; the handler
   *   did not run. `error` says why.
   */
  readonly type:
    | "called"
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
    | "aborted";
  /** The call's number, the same in both its events, and no other run's or lock's in this process. */
  readonly id: number;
  readonly key: string;
  /** Of `unstored` and `omitted`: see {@link Outcome.unstored}. */
  readonly reason?: UnstoredReason | "no-quorum";
  /**
   * Of `unstored`: the error that the codec threw, or that describes what it returned. Of `aborted` and `failed`: what
   * the call throws.
   */
  readonly error?: unknown;
  /** ms since the call. */
  readonly elapsed: number;
}

/** Emits an event of a call. */
export type Report = (
  type: IdempotencyEvent["type"],
  details?: Pick<IdempotencyEvent, "reason"> & { readonly error?: unknown },
) => void;
