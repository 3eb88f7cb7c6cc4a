import { type Runtime, runInBackground, sleep, stopwatch, type WaitUntil } from "../runtime.ts";
import { type Backoff, pauses } from "./backoff.ts";

// The loop of everything that is tried again: to acquire, to resume, to run, to arrive, to store a result.

/** How long, and with which pauses, to try. */
export interface RetryContext {
  readonly runtime: Runtime;
  readonly backoff: Backoff;
  /** How long to go on, in ms. The attempt under way then is the last. */
  readonly wait: number;
  /** ms until the deadline of the call. Default: it has none. */
  readonly limit?: number;
  /** Ends it at once; the call rejects with its reason. Rollbacks go on. */
  readonly signal?: AbortSignal | undefined;
  readonly waitUntil?: WaitUntil | undefined;
  /** ms since the call. Default: since now. */
  readonly elapsed?: () => number;
}

/** What an attempt knows of the call that it belongs to. */
export interface Progress {
  /** ms since the call. */
  elapsed(): number;
  /** ms that remain of `wait`, or of another time since the call, and of the deadline. */
  remaining(ms?: number): number;
  /** Whether the caller still waits for something else than the rollbacks. */
  isWaiting(): boolean;
}

/** An attempt that came to nothing. */
export interface Failed<Value> {
  /** Takes back what the attempt may have left. Goes on in the background. */
  readonly rolledBack?: Promise<unknown>;
  /** Whether another attempt may come to something. */
  readonly mayRetry: boolean;
  /** How long to go on since the call, in ms. Default: the context's `wait`. */
  readonly within?: number;
  /** Whether another attempt follows at once, even after `wait`. Default false. */
  readonly isUrgent?: boolean;
  /** ms to pause. Default: by the backoff. */
  readonly pause?: number | undefined;
  /** After so many ms another attempt may succeed whoever is in the way. Default: not known. */
  readonly retryAfter?: number | undefined;
  /** How long the attempt took, in ms, and the holder that it has seen: see {@link pauses}. */
  readonly took?: number;
  readonly holder?: number | undefined;
  /** Called with the pause before the next attempt; undefined: there is none. */
  report?(retryIn: number | undefined): void;
  /** Pauses for `poll` ms, or until a message comes, for `longest` ms at most. Default: `poll` ms. */
  rest?(poll: number, longest: number): Promise<void> | undefined;
  /** Ends the call with a value or an error. Called when the rollbacks are done: by then more may be known. */
  end(): Value;
}

/**
 * Runs attempts, with pauses between them, until one has a value, none may succeed any more, or the time is over.
 *
 * @throws what the last attempt ended with, or the signal's reason
 */
export async function retry<Value>(
  context: RetryContext,
  attempt: (progress: Progress) => Promise<{ readonly value: Value } | Failed<Value>>,
): Promise<Value> {
  const { runtime, wait, limit = Infinity, signal, elapsed = stopwatch(runtime) } = context;
  const nextPause = pauses(context.backoff, runtime);
  const rollbacks = new Set<Promise<unknown>>();
  let isInBackground = true;
  let isWaiting = true;
  const progress: Progress = {
    elapsed,
    remaining: (ms = wait) => Math.min(ms, limit) - elapsed(),
    isWaiting: () => isWaiting && !signal?.aborted,
  };
  for (;;) {
    if (signal?.aborted) throw signal.reason;
    const failed = await attempt(progress);
    if ("value" in failed) return failed.value;
    const { rolledBack, took, holder, retryAfter = Infinity, isUrgent = false } = failed;
    if (rolledBack) {
      const done: Promise<unknown> = rolledBack.finally(() => rollbacks.delete(done));
      rollbacks.add(done);
      isInBackground = runInBackground(context, done);
    }
    if (signal?.aborted) throw signal.reason;
    const remaining = progress.remaining(failed.within);
    // A clock may be too coarse to show the last part of a ms pass.
    const longest = Math.min(Math.max(remaining, 1), retryAfter);
    const pause = isUrgent ? 0 : (failed.pause ?? nextPause(took, { holder, waited: elapsed() }));
    const poll = Math.min(pause, longest);
    const goesOn = failed.mayRetry && (remaining > 0 || isUrgent);
    failed.report?.(goesOn ? poll : undefined);
    if (!goesOn) {
      isWaiting = false;
      // Nothing else keeps the rollbacks alive once the caller has its answer.
      if (!isInBackground) await Promise.all(rollbacks);
      return failed.end();
    }
    if (!isUrgent) await (failed.rest?.(poll, longest) ?? sleep(runtime, poll, signal));
  }
}
