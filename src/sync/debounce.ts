import { checkInteger, checkName, checkOptions, milliseconds, type Schema } from "../check/check.ts";
import { checkCall, type LockClient, settingsOf } from "../lock/client.ts";
import { sleep } from "../runtime/runtime.ts";
import { type WaitOptions, waitSchema } from "./internal/hold.ts";
import { NewestCall } from "./internal/newest.ts";

/** Options of {@link debounce}. All calls of a name must share one `window` and `ttl`. */
export interface DebounceOptions extends Omit<WaitOptions, "autoExtend" | "maxHold" | "deadline" | "wakeUp"> {
  /** ms without a later call after which the routine runs: an integer from 1 to 1 073 741 823 (12 days). */
  readonly window: number;
  /**
   * How long after its window a call may still find that it was the last, in ms: an integer from 10 to 1 073 741 823.
   * Default: the client's.
   */
  readonly ttl?: number | undefined;
}

const { autoExtend: _extend, maxHold: _hold, deadline: _deadline, wakeUp: _wakeUp, ...usual } = waitSchema;

/** `ran: false`: a later call superseded this one. */
export type DebounceOutcome<Value> = { readonly ran: true; readonly value: Value } | { readonly ran: false };

/** In ms. Window and ttl are added up. */
const maxWindow = 2 ** 30 - 1;

const schema: Schema<DebounceOptions> = {
  ...usual,
  window: milliseconds(1, maxWindow, 1),
  ttl: milliseconds(10, maxWindow, 100),
};

/**
 * Waits for `window` ms and then runs `routine`, unless a later call of this name, on any replica, superseded it. If
 * the process of the last call dies in the window, no other call runs instead. While calls never pause for `window`,
 * none runs. Two bursts can overlap, and then both run.
 *
 * @throws QuorumError when too few endpoints answered. The routine did not run
 * @throws LockLostError when the process was frozen for so long that it cannot know whether it was the last
 * @throws the routine's error, or the signal's reason
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
  // No call of this one has a deadline.
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
