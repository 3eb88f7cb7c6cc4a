import { unlessAborted } from "../abort.ts";
import { acquireWithRetry } from "../bridge/strategy.ts";
import { checkInteger, checkName, checkType, integer, type Schema } from "../check.ts";
import { LockHeldError, type QuorumError, type RedlockError } from "../errors.ts";
import { orHeld } from "../lock/acquire.ts";
import { clientStateOf, type LockClient, settingsOf } from "../lock/client.ts";
import type { Lock } from "../lock/lock.ts";
import type { Settings } from "../lock/options.ts";
import { retry } from "../quorum/retry.ts";
import { maxTimerDelay } from "../runtime.ts";
import { checkSyncOptions, type WaitOptions, waitSchema } from "./internal/hold.ts";
import { type IntervalStrategy, intervalStrategy } from "./internal/interval.ts";

/** The interval of {@link once}, and the options of the call. */
export interface OnceOptions extends Omit<WaitOptions, "autoExtend" | "maxHold" | "wakeUp"> {
  /** The length of an interval, in ms: an integer from 20 to 2 147 483 647 (24 days). */
  readonly every: number;
  /**
   * How long a claim that has not become a run keeps others out, in ms: an integer from 10 to `every`. Default: the
   * client's, or half of `every` if that is less.
   */
  readonly ttl?: number | undefined;
  /**
   * How long to wait for the outcome of another replica's claim, in ms. Default: twice the ttl; by then the claim is a
   * run or has expired. With less, `ran: false` may mean that neither was seen. A call never waits for the end of an
   * interval, however long `wait` is.
   */
  readonly wait?: number | undefined;
}

const { autoExtend: _extend, maxHold: _hold, wakeUp: _wakeUp, ...usual } = waitSchema;
const schema: Schema<OnceOptions> = { ...usual, every: integer(20, maxTimerDelay, "ms") };

/** What a run's routine gets. */
export interface OnceContext {
  /** Larger than that of every earlier run of this name, for the data that the run writes. */
  readonly fence: number;
  /** Aborts when the interval is about to end and another run may begin. */
  readonly signal: AbortSignal;
  /** ms of the interval that remain. */
  remaining(): number;
}

/** Whether the routine ran here, and what it returned; if not, in how many ms the interval ends. */
export type OnceOutcome<Value> =
  | { readonly ran: true; readonly value: Value }
  | { readonly ran: false; readonly retryAfter: number };

/**
 * Runs `routine` unless a run of this name has begun, on any replica, since `every` ms before the call: **at most once**
 * per interval. The interval begins when a quorum knows of the run, at most one `timeout` before its routine is called,
 * and ends `every` ms later by the endpoints' clocks. That holds whatever becomes of the run: when the routine fails, or
 * its process dies in its first moment, no other replica runs it in the same interval. If running twice is better than
 * not at all, use `Idempotency.run`.
 *
 * A call that finds a run returns at once. A call that finds a claim waits for its outcome: it becomes a run, which is
 * then this call's, too, or it expires, and this call takes over. So a process that dies before its routine has begun
 * keeps others out for `ttl` only.
 *
 * @returns `ran: false` when another replica has begun, or is about to; then `routine` is not called
 * @throws QuorumError when too few endpoints answered; the routine did not run, but the interval may have begun
 * @throws LockLostError when the claim was lost before the routine could begin
 * @throws TypeError | RangeError when an argument is wrong; nothing was sent
 * @throws what the routine throws, or the reason of the signal that ends the waiting
 * @example
 * // Every replica's cron calls this at midnight, one of them runs it; 23 h, so that tomorrow's is not too early.
 * await once(redlock, "nightly", { every: 23 * 3_600_000 }, ({ signal }) => report({ signal }));
 */
export async function once<Value>(
  redlock: LockClient,
  name: string,
  options: OnceOptions,
  routine: (context: OnceContext) => Promise<Value> | Value,
): Promise<OnceOutcome<Value>> {
  checkName("name", name);
  checkType("routine", routine, "function");
  const { every, ...given } = checkSyncOptions("once", options, schema, {
    required: ["every"],
    usual: "every",
  });
  const { signal, deadline } = given;
  const settings = onceSettings(redlock, every, given);
  const strategy = intervalStrategy(settings.runtime, settings.prefix, name);
  const outcome = await orHeld(acquireWithRetry(settings, [name], { signal, deadline }, strategy));
  if (outcome instanceof LockHeldError) {
    return { ran: false, retryAfter: outcome.retryAfter ?? settings.ttl };
  }
  await confirm(settings, outcome, strategy, { every, signal });
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
    void outcome.abandon();
  }
}

function onceSettings(redlock: LockClient, every: number, given: Omit<OnceOptions, "every">): Settings {
  const { ttl: usual = 10_000 } = clientStateOf(redlock).options;
  const { ttl = Math.min(usual, Math.floor(every / 2)) } = given;
  const settings = settingsOf(redlock, { wait: 2 * ttl }, given, { ttl, autoExtend: false });
  checkInteger("ttl (ms)", settings.ttl, 10, every);
  return settings;
}

/**
 * Makes the claim a run of the whole interval on a quorum, before the routine begins. Only then: a request whose answer
 * was lost must not keep everybody out for a whole interval. An abort ends the retries: what a quorum has granted begins,
 * because others may have seen it, and leave the interval to it.
 */
async function confirm(
  { runtime, backoff }: Settings,
  lock: Lock,
  strategy: IntervalStrategy,
  { every, signal }: Pick<OnceOptions, "every" | "signal">,
): Promise<void> {
  try {
    await retry({ runtime, backoff, wait: Infinity }, { signal }, async () => {
      try {
        strategy.confirm(every);
        return { value: await lock.extend(every) };
      } catch (error) {
        const remaining = lock.remaining();
        return {
          // Less than a ms is not enough for another round: a clock may be too coarse to show it pass.
          next: (error as RedlockError).code === "NO_QUORUM" && remaining >= 1 ? "pause" : "end",
          votes: (error as Partial<QuorumError>).votes ?? [],
          retryAfter: remaining,
          end() {
            throw error;
          },
        };
      }
    });
  } catch (error) {
    await unlessAborted(lock[Symbol.asyncDispose](), signal);
    throw error;
  }
}
