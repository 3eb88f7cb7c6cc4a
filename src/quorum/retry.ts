import type { Vote } from "../errors/errors.ts";
import { unlessAborted } from "../runtime/abort.ts";
import { keepAlive, type Runtime, sleep, stopwatch, type WaitUntil } from "../runtime/runtime.ts";
import { type Backoff, pauses } from "./backoff.ts";
import { untilUsable } from "./round.ts";

export interface RetrySettings {
  readonly runtime: Runtime;
  readonly backoff: Backoff;
  readonly wait: number;
  readonly waitUntil?: WaitUntil | undefined;
}

export interface RetryCall {
  /** ms until the deadline. Default: none. */
  readonly limit?: number;
  /** Rollbacks go on. */
  readonly signal?: AbortSignal | undefined;
  /** ms since the call. Default: since now. */
  readonly elapsed?: () => number;
}

export interface Progress {
  /** ms since the call. */
  elapsed(): number;
  /** `ms`: after the call began. Default: the settings' `wait`. */
  remaining(ms?: number): number;
  untilDeadline(): number;
  /** Without `waitUntil`, the call waits for all rollbacks before its `end`. The next attempt does not. */
  keep(rollback: Promise<unknown>): void;
}

/** `at-once`: even after `wait`, but not after the deadline. */
export type Next = "end" | "pause" | Rest | "at-once";

export interface Rest {
  /** ms. Default: by the backoff. */
  readonly pause?: number;
  /** Only until so many ms after the call. Default: the settings' `wait`. */
  readonly within?: number;
}

export interface FailedAttempt<Value> {
  readonly next: Next;
  /** Default: all endpoints are usable. */
  readonly votes?: readonly Vote[];
  /** ms until the obstacle has expired. */
  readonly retryAfter?: number | undefined;
  /** ms. Default 0. See {@link pauses}. */
  readonly took?: number;
  /** Undefined: no attempt follows. */
  report?(retryIn: number | undefined): void;
  /** For `longest` ms at most. Undefined: nobody publishes a message. */
  rest?(poll: number, longest: number): Promise<void> | undefined;
  /** Called after the rollbacks, when more is known. */
  end(): Value;
}

/** @throws the error of the last attempt, or the signal's reason */
export async function retry<Value>(
  settings: RetrySettings,
  { limit = Infinity, signal, elapsed = stopwatch(settings.runtime) }: RetryCall,
  attempt: (progress: Progress) => Promise<{ readonly value: Value } | FailedAttempt<Value>>,
): Promise<Value> {
  const { runtime, wait, backoff } = settings;
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
    // A clock may be coarse.
    const longest = Math.min(Math.max(remaining, 1), retryAfter);
    nextPause ??= pauses(backoff, runtime);
    const pause = rest.pause ?? nextPause(took);
    const poll = Math.min(pause, longest);
    failed.report?.(poll);
    await (failed.rest?.(poll, longest) ?? sleep(runtime, poll, signal));
  }
}
