import { checkInteger, checkName, checkOptions, milliseconds, type Schema } from "../check/check.ts";
import { checkCall, type LockClient, settingsOf } from "../lock/client.ts";
import { sleep } from "../runtime/runtime.ts";
import { type WaitOptions, waitSchema } from "./internal/hold.ts";
import { NewestCall } from "./internal/newest.ts";

/**
 * The window of {@link debounce}, and the options of the call. All calls of a name must share one `window` and `ttl`.
 */
export interface DebounceOptions extends Omit<WaitOptions, "autoExtend" | "maxHold" | "deadline" | "wakeUp"> {
  /** ms without a later call after which the routine runs: an integer from 1 to 1 073 741 823 (12 days). */
  readonly window: number;
  /**
   * How long after its window a call may still find that it was the last, in ms: an integer from 10 to 1 073 741 823.
   * Default: the client's. A process that is frozen for longer does not run its routine.
   */
  readonly ttl?: number | undefined;
}

const { autoExtend: _extend, maxHold: _hold, deadline: _deadline, wakeUp: _wakeUp, ...usual } = waitSchema;

/** Whether the routine ran here, and its result. `ran: false`: a later call superseded this one. */
export type DebounceOutcome<Value> = { readonly ran: true; readonly value: Value } | { readonly ran: false };

/** Longest window, and longest ttl, in ms: their sum is a ttl that Redis and timers keep. */
const maxWindow = 2 ** 30 - 1;

const schema: Schema<DebounceOptions> = {
  ...usual,
  window: milliseconds(1, maxWindow, 1),
  ttl: milliseconds(10, maxWindow, 100),
};

/**
 * Waits for `window` ms and then runs `routine`, unless a later call of this name, on any replica, superseded it
 * meanwhile. So of a burst of calls the last one runs.
 *
 * A call is later than every other that was announced on a quorum before it began. Clocks do not decide. A call that is
 * announced while another finds that it is the last begins a burst of its own, and both run. The process of the last call
 * must survive the window: if it dies, no other call runs instead. While calls never pause for `window`, none runs.
 *
 * @returns `ran: false` when a later call superseded this one. Then `routine` is not called
 * @throws QuorumError when too few endpoints answered. The routine did not run
 * @throws LockLostError when the process was frozen for so long that it cannot know whether it was the last
 * @throws TypeError | RangeError when an argument is wrong. Nothing was sent
 * @throws the routine's error, or the reason of the signal that ends the waiting
 * @example
 * ctx.waitUntil(debounce(redlock, `reindex:${shop}`, { window: 2_000 }, () => reindex(shop)));
 */
export async function debounce<Value>(
  redlock: LockClient,
  name: string,
  options: DebounceOptions,
  routine: () => Promise<Value> | Value,
): Promise<DebounceOutcome<Value>> {
  checkCall("debounce(redlock, name, { window: 2_000 }, routine)", { redlock, name, options, routine });
  checkName("name", name);
  // Not as the other synchronizers do: a deadline does not belong to any call of this one.
  const hints = { usual: "window", required: ["window"] };
  const { window, ...given } = checkOptions("debounce", options, schema, hints);
  const { signal } = given;
  const settings = settingsOf(redlock, given);
  const ttl = window + checkInteger("ttl (ms)", settings.ttl, 10, maxWindow);
  const call = new NewestCall({ settings, kind: "debounce", name, ttl, signal });
  if (!(await isNewestAfter(window))) return { ran: false };
  return { ran: true, value: await routine() };

  async function isNewestAfter(ms: number): Promise<boolean> {
    try {
      await call.announce(settings.wait);
      await sleep(settings.runtime, ms, signal);
      return await call.isNewest(call.remaining(), signal);
    } catch (error) {
      // The call before it may be the last one again.
      await call.withdraw();
      throw error;
    }
  }
}
