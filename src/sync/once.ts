import { checkInteger, checkType } from "../check.ts";
import { isRedlockError, LockHeldError } from "../errors.ts";
import { acquireWithRetry } from "../lock/acquire.ts";
import { Lock } from "../lock/lock.ts";
import { checkAcquire, type Settings } from "../lock/options.ts";
import { pauses } from "../quorum/backoff.ts";
import type { Redlock } from "../redlock.ts";
import { sleep } from "../runtime.ts";
import { checkName, syncSettings, type WaitOptions } from "./internal/hold.ts";
import { type IntervalStrategy, intervalStrategy } from "./internal/interval.ts";

/** How often something may run. */
export interface OnceOptions extends Omit<WaitOptions, "autoExtend" | "maxHold"> {
  /** The length of an interval, in ms: an integer from 20 to 2 147 483 647 (24 days). */
  readonly every: number;
  /**
   * How long a claim stands that has not become a run, in ms: an integer from 10 to `every`. Default: the client's,
   * or half of `every` if that is less.
   */
  readonly ttl?: number | undefined;
  /**
   * How long to wait for the outcome of another replica's claim, in ms. Default: twice the ttl; by then the claim is a
   * run or has ended. With less, `ran: false` may mean that neither was seen. A call never waits for the end of an
   * interval, however long `wait` is.
   */
  readonly wait?: number | undefined;
}

/** What a run is told. */
export interface OnceContext {
  /** Larger than that of every earlier run of this name: for the data that it writes. */
  readonly fence: number;
  /** Aborts when the interval is about to end, and another run may begin. */
  readonly signal: AbortSignal;
  /** ms of the interval left. */
  remaining(): number;
}

/** Whether the routine ran here, and what it returned; if not, in how many ms the interval ends. */
export type OnceOutcome<Value> =
  | { readonly ran: true; readonly value: Value }
  | { readonly ran: false; readonly retryAfter: number };

/**
 * Runs `routine` unless a run of this name has begun, on any replica, since `every` ms before the call: **at most once**
 * per interval. The interval begins when a quorum knows of the run, at most one `timeout` before its routine is called,
 * and ends `every` ms later by the endpoints' clocks, whatever becomes of the run: when the routine fails, or its process
 * dies in its first moment, nobody runs it again before that. Where it had better run twice than not at all, use
 * `Idempotency.run`.
 *
 * A call that finds a run returns at once. A call that finds a claim waits for its outcome: a run, which is then this
 * call's, too, or the end of the claim, which the call then takes over.
 *
 * A process that dies before its routine has begun is another matter: then its claim ends after `ttl`.
 *
 * @returns `ran: false` when another replica has begun, or is about to; then `routine` is not called
 * @throws QuorumError when too few endpoints answered; the routine did not run, but the interval may have begun
 * @throws LockLostError when the claim was lost before the routine could begin
 * @throws what the routine throws, or the reason of the signal that ends the waiting
 * @example
 * // Every replica's cron calls this at midnight, one of them runs it; 23 h, so that tomorrow's is not too early.
 * await once(redlock, "nightly", { every: 23 * 3_600_000 }, ({ signal }) => report({ signal }));
 */
export async function once<Value>(
  redlock: Redlock,
  name: string,
  options: OnceOptions,
  routine: (turn: OnceContext) => Promise<Value> | Value,
): Promise<OnceOutcome<Value>> {
  checkName(name);
  checkType("routine", routine, "function");
  const { every, ...given } = options;
  checkInteger("every", every, 20, 2_147_483_647);
  const { signal, deadline } = checkAcquire(given);
  const { ttl: usual = 10_000 } = redlock.options;
  const { ttl = Math.min(usual, Math.floor(every / 2)) } = given;
  const settings = syncSettings(redlock, { wait: 2 * ttl }, given, { ttl, autoExtend: false });
  checkInteger("ttl", settings.ttl, 10, every);

  const strategy = intervalStrategy(settings.runtime, settings.prefix, name);
  const outcome = await acquireWithRetry(settings, [name], { signal, deadline }, strategy);
  if (!(outcome instanceof Lock)) {
    if (!(outcome instanceof LockHeldError)) throw outcome;
    return { ran: false, retryAfter: outcome.retryAfter ?? settings.ttl };
  }
  await confirm(settings, outcome, strategy, every);
  try {
    const value = await routine({
      fence: strategy.fence(),
      get signal() {
        return outcome.signal;
      },
      remaining: () => outcome.remaining(),
    });
    return { ran: true, value };
  } finally {
    outcome.abandon();
  }
}

/**
 * Makes the claim an interval on a quorum, before the routine begins. Until then it is short: what a request took
 * whose answer was lost must not keep everybody away for a whole interval.
 */
async function confirm(
  { runtime, backoff }: Settings,
  claim: Lock,
  strategy: IntervalStrategy,
  every: number,
): Promise<void> {
  for (const next = pauses(backoff, runtime); ; ) {
    try {
      strategy.confirm();
      await claim.extend(every);
      return;
    } catch (error) {
      // Less than a ms is no time to ask again: a clock may be too coarse to see it pass.
      if (!isRedlockError(error) || error.code !== "NO_QUORUM" || claim.remaining() < 1) {
        await claim[Symbol.asyncDispose]();
        throw error;
      }
    }
    await sleep(runtime, Math.min(next(), claim.remaining()));
  }
}
