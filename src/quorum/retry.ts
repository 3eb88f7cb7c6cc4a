import type { Vote } from "../errors/errors.ts";
import { unlessAborted } from "../runtime/abort.ts";
import { keepAlive, type Runtime, sleep, stopwatch, type WaitUntil } from "../runtime/runtime.ts";
import { type Backoff, pauses } from "./backoff.ts";
import { untilUsable } from "./round.ts";

// The one loop that tries again: acquire, resume, run, arrive and store a result are attempts of it.

/** The common part of a client's calls: how long to try, and how long to pause between attempts. */
export interface RetrySettings {
  readonly runtime: Runtime;
  readonly backoff: Backoff;
  /** ms after which no attempt begins any more. */
  readonly wait: number;
  readonly waitUntil?: WaitUntil | undefined;
}

/** What belongs to one call only. */
export interface RetryCall {
  /** ms until the deadline of the call. Default: it has none. */
  readonly limit?: number;
  /** Ends the call at once: it rejects with the reason. Rollbacks go on. */
  readonly signal?: AbortSignal | undefined;
  /** ms since the call. Default: since now. */
  readonly elapsed?: () => number;
}

/** What an attempt knows of the call that it belongs to. */
export interface Progress {
  /** ms since the call. */
  elapsed(): number;
  /** ms until the deadline, or until `ms` have passed since the call if that is earlier. Default: the settings' `wait`. */
  remaining(ms?: number): number;
  /** ms until the deadline: a duration, so that only elapsed time counts. Infinity: there is none. */
  untilDeadline(): number;
  /**
   * Keeps the rollback of a failed attempt alive by `waitUntil`. Without it, the call waits for all rollbacks before it ends
   * without a value, even if its `end` then has one, as a duplicate's has. The next attempt does not wait for them.
   */
  keep(rollback: Promise<unknown>): void;
}

/**
 * The step after a failed attempt: nothing, because none may succeed any more, another one after a pause, or another one at
 * once, even after `wait`, but not after the deadline.
 */
export type Next = "end" | "pause" | Rest | "at-once";

/** Another attempt after a pause. */
export interface Rest {
  /** Of so many ms. Default: by the backoff. */
  readonly pause?: number;
  /** If fewer ms have passed since the call. Default: the settings' `wait`. */
  readonly within?: number;
}

/** A failed attempt, and the next step. */
export interface FailedAttempt<Value> {
  readonly next: Next;
  /** The endpoints' answers: none follows while too many are unusable. Default: all are usable. */
  readonly votes?: readonly Vote[];
  /** The obstacle will have expired after so many ms. Default: not known. */
  readonly retryAfter?: number | undefined;
  /** How long the attempt took, in ms. Default 0. See {@link pauses}. */
  readonly took?: number;
  /** Called with the pause before the next attempt. Undefined: there is none. */
  report?(retryIn: number | undefined): void;
  /** Waits for a message, at most `longest` ms. Undefined where nobody publishes one: the loop pauses for `poll` ms. */
  rest?(poll: number, longest: number): Promise<void> | undefined;
  /** Ends the call: its value, or it throws. Called after the rollbacks where those are waited for: then more is known. */
  end(): Value;
}

/**
 * Runs attempts, with pauses between them, until one has a value, none may succeed any more, or the time is over.
 *
 * @throws the error of the last attempt, or the signal's reason
 */
export async function retry<Value>(
  settings: RetrySettings,
  { limit = Infinity, signal, elapsed = stopwatch(settings.runtime) }: RetryCall,
  attempt: (progress: Progress) => Promise<{ readonly value: Value } | FailedAttempt<Value>>,
): Promise<Value> {
  const { runtime, wait, backoff } = settings;
  // Most calls succeed with their first attempt, so these are made where one fails.
  let nextPause: ReturnType<typeof pauses> | undefined;
  let rollbacks: Set<Promise<unknown>> | undefined;
  const progress: Progress = {
    elapsed,
    remaining: (ms = wait) => Math.min(ms, limit) - elapsed(),
    untilDeadline: () => (limit === Infinity ? limit : limit - elapsed()),
    keep(rollback) {
      if (keepAlive(settings, rollback)) return;
      rollbacks ??= new Set();
      const done: Promise<unknown> = rollback.finally(() => rollbacks?.delete(done));
      rollbacks.add(done);
    },
  };
  for (;;) {
    if (signal?.aborted) throw signal.reason;
    const failed = await attempt(progress);
    if ("value" in failed) return failed.value;
    const { next, took, retryAfter = Infinity, votes = [] } = failed;
    const rest: Rest = typeof next === "object" ? next : {};
    if (signal?.aborted) throw signal.reason;
    const remaining = progress.remaining(rest.within);
    const unusable = untilUsable(votes);
    const isInTime = unusable > 0 ? unusable < remaining : remaining > 0 || next === "at-once";
    // After the deadline nothing that is granted is valid.
    if (next === "end" || !isInTime || progress.untilDeadline() <= 0) {
      failed.report?.(undefined);
      if (rollbacks) await unlessAborted(Promise.allSettled(rollbacks), signal);
      if (signal?.aborted) throw signal.reason;
      return failed.end();
    }
    if (unusable > 0 || next === "at-once") {
      failed.report?.(unusable);
      if (unusable > 0) await sleep(runtime, unusable, signal);
      continue;
    }
    // A clock may be too coarse to show the last part of a ms pass.
    const longest = Math.min(Math.max(remaining, 1), retryAfter);
    nextPause ??= pauses(backoff, runtime);
    const pause = rest.pause ?? nextPause(took);
    const poll = Math.min(pause, longest);
    failed.report?.(poll);
    await (failed.rest?.(poll, longest) ?? sleep(runtime, poll, signal));
  }
}
