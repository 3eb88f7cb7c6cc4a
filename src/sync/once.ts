import { checkInteger, checkName, milliseconds, type Schema } from "../check/check.ts";
import type { Ask } from "../endpoints/ask.ts";
import { LockHeldError, QuorumError } from "../errors/errors.ts";
import { acquire, orHeld } from "../lock/acquire.ts";
import { checkCall, clientStateOf, type LockClient, settingsOf } from "../lock/client.ts";
import { timeUntilFree } from "../lock/contention.ts";
import type { Lock } from "../lock/lock.ts";
import type { Settings } from "../lock/options.ts";
import { type Protocol, tombstoneOf, withoutTombstone } from "../lock/protocol.ts";
import { retry } from "../quorum/retry.ts";
import { isVeto } from "../quorum/tally.ts";
import { type Cell, type CellAnswer, readCounter, tombstoneRetention } from "../redis/cell.ts";
import { keyOf } from "../redis/keys.ts";
import { foreignData, runScript, unexpectedReply } from "../redis/script.ts";
import { unlessAborted } from "../runtime/abort.ts";
import { maxTimerDelay, stopwatch } from "../runtime/runtime.ts";
import { checkSyncOptions, type WaitOptions, waitSchema } from "./internal/hold.ts";
import { intervalScript } from "./internal/interval.lua.ts";
import { isInteger, itemsOf } from "./internal/reply.ts";

/** Options of {@link once}. */
export interface OnceOptions extends Omit<WaitOptions, "autoExtend" | "maxHold" | "wakeUp"> {
  /**
   * The length of an interval, in ms: an integer from 20 to 2 147 483 647 (24 days). If calls differ, the shorter
   * length counts.
   */
  readonly every: number;
  /**
   * How long a claim that has not become a run keeps others out, in ms: an integer from 10 to `every`. Default: the
   * client's, or half of `every` if that is less.
   */
  readonly ttl?: number | undefined;
  /**
   * How long to wait for the outcome of another replica's claim, in ms, but never for the end of an interval. With less
   * than the default, `ran: false` may mean that no run was seen. Default: twice the ttl.
   */
  readonly wait?: number | undefined;
}

const { autoExtend: _extend, maxHold: _hold, wakeUp: _wakeUp, ...usual } = waitSchema;
const schema: Schema<OnceOptions> = { ...usual, every: milliseconds(20, maxTimerDelay) };

/** The argument of a run's routine. */
export interface OnceContext {
  /** Larger than the fence of every earlier run of this name. */
  readonly fence: number;
  /** Aborts when the interval is about to end and another run may begin. */
  readonly signal: AbortSignal;
  /** ms of the interval that remain. */
  remaining(): number;
}

/** `ran: false`: the interval ends in `retryAfter` ms. */
export type OnceOutcome<Value> =
  | { readonly ran: true; readonly value: Value }
  | { readonly ran: false; readonly retryAfter: number };

/**
 * Runs `routine` unless a run of this name has begun, on any replica, since `every` ms before the call: **at most
 * once** per interval, even if the routine fails or its process dies. If running twice is better than not at all, use
 * `Idempotency.run`. The interval begins at most one `timeout` before the routine, and ends by the endpoints' clocks. A
 * process that dies before its routine has begun keeps others out for `ttl` only.
 *
 * @returns `ran: false` when another replica has begun, or is about to
 * @throws QuorumError when too few endpoints answered. The routine did not run, but the interval may have begun
 * @throws LockLostError when the claim was lost before the routine could begin
 * @throws the routine's error, or the signal's reason
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
  checkCall("once(redlock, name, { every: 60_000 }, routine)", { redlock, name, options, routine });
  checkName("name", name);
  const { every, ...given } = checkSyncOptions("once", options, schema, {
    required: ["every"],
    usual: "every",
  });
  const { signal, deadline } = given;
  const settings = onceSettings(redlock, every, given);
  const protocol = intervalOf(settings, name, every);
  const outcome = await orHeld(acquire(settings, [name], { signal, deadline }, protocol));
  if (outcome instanceof LockHeldError) {
    return { ran: false, retryAfter: outcome.retryAfter ?? settings.ttl };
  }
  await begin(settings, outcome, protocol, { every, signal });
  try {
    const value = await routine({
      fence: protocol.fence,
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
 * Only now does the claim become a run, because a claim whose answer was lost must not keep everybody out for a whole
 * interval. After an abort, a granted run begins: others may have seen it, and leave the interval to it.
 */
async function begin(
  { runtime, backoff }: Settings,
  lock: Lock,
  protocol: IntervalProtocol,
  { every, signal }: Pick<OnceOptions, "every" | "signal">,
): Promise<void> {
  let outage: QuorumError | undefined;
  const confirm = async () => {
    // Not taken away: too few endpoints have answered.
    if (outage && lock.remaining() <= 0) throw outage;
    protocol.confirmsAgain();
    return { value: await lock.extend(every) };
  };
  try {
    await retry({ runtime, backoff, wait: Infinity }, { signal }, () =>
      confirm().catch((error: unknown) => {
        const remaining = lock.remaining();
        if (error instanceof QuorumError) outage = error;
        return {
          // A clock may be coarse.
          next: error instanceof QuorumError && remaining >= 1 ? "pause" : "end",
          votes: error instanceof QuorumError ? error.votes : [],
          retryAfter: remaining,
          end() {
            throw error;
          },
        };
      }),
    );
  } catch (error) {
    await unlessAborted(lock[Symbol.asyncDispose](), signal);
    throw error;
  }
}

/** For an interval and its fence, after its end: 24 hours. */
const retention = 86_400_000;

interface IntervalAnswer extends CellAnswer {
  /** Whether a run has it, or had it when the call was made. */
  readonly hasRun?: boolean;
}

interface IntervalProtocol extends Protocol<IntervalAnswer> {
  /** Known once the claim is granted. */
  readonly fence: number;
  /** The next `extend` prolongs what earlier ones began. */
  confirmsAgain(): void;
}

/**
 * An extension makes a claim with a short ttl a run of the whole interval. The stored value tells the two apart,
 * because a refused call waits for a claim, but a run ends it.
 */
export function intervalOf(
  { prefix, runtime }: Pick<Settings, "prefix" | "runtime">,
  name: string,
  every: number,
): IntervalProtocol {
  const keys = ["once", "once-end", "once-fence"].map((kind) => keyOf(prefix, kind, name));
  const waited = stopwatch(runtime);
  let fence = 0;
  let confirmations = 0;
  return {
    get fence() {
      return fence;
    },
    confirmsAgain() {
      confirmations += 1;
    },
    cell: (nonce) => ({ keys, value: nonce, tombstone: tombstoneOf(prefix, [name], nonce) }),
    claim: (call, cell, ttl) => send(call, cell, "acquire", [ttl, every, Math.floor(waited())]),
    confirm(round) {
      const drawn = round.answers().map((answer) => answer.fence ?? 0);
      fence = Math.max(Math.floor(runtime.now()), ...drawn.map((last) => last + 1));
      return undefined;
    },
    // The deadline ends only the run's validity.
    extend: (call, cell) =>
      send(call, withoutTombstone(cell), "extend", [every, confirmations, fence, retention]),
    release(call, cell, claim) {
      if (claim.hasDoneNothing) return Promise.resolve({ outcome: "lost" });
      return send(call, claim.isOver ? withoutTombstone(cell) : cell, "release", [tombstoneRetention]);
    },
    isRestorable: false,
    next({ calls }) {
      const runs = calls.filter(({ answer }) => answer?.outcome === "held" && answer.hasRun).length;
      if (!isVeto(runs, calls.length)) return "pause";
      throw new LockHeldError([name], waited(), { retryAfter: timeUntilFree(calls) ?? 1 });
    },
  };
}

async function send(
  call: Ask,
  { keys, value, tombstone }: Cell,
  operation: "acquire" | "extend" | "release",
  args: readonly number[],
): Promise<IntervalAnswer> {
  const names = tombstone ? [...keys, tombstone] : keys;
  const reply = await runScript(call, intervalScript, names, [value, operation, ...args]);
  const [echo, other, kind] = itemsOf(reply);
  if (echo === value) {
    const drawn = Number(other) === 0 ? 0 : readCounter(other);
    if (operation === "release" || drawn !== undefined) return { outcome: "granted", fence: drawn };
  }
  if (echo === 0 && operation !== "acquire" && other === undefined) return { outcome: "lost" };
  if (echo === 0 && isInteger(other) && other >= 0) {
    if (kind === "f" && keys[other - 1]) throw new Error(foreignData([keys[other - 1]]));
    if (operation === "acquire" && (kind === "c" || kind === "r")) {
      return { outcome: "held", retryAfter: other, hasRun: kind === "r" };
    }
  }
  throw unexpectedReply();
}
