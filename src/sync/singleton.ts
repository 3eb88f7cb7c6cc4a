import { checkName, oneOf, type Schema } from "../check/check.ts";
import { LockHeldError } from "../errors/errors.ts";
import { acquire, orHeld } from "../lock/acquire.ts";
import { checkCall, type LockClient, settingsOf } from "../lock/client.ts";
import { holderOf } from "../lock/contention.ts";
import { lockProtocol } from "../lock/fence.ts";
import type { Lock } from "../lock/lock.ts";
import { type Settings, timeUntil } from "../lock/options.ts";
import { onAbort, unlessAborted } from "../runtime/abort.ts";
import { maxTimerDelay, randomToken, stopwatch } from "../runtime/runtime.ts";
import { acquireLooking, type CallOptions } from "./internal/acquire-looking.ts";
import { checkSyncOptions, type NotedOptions, notedSchema } from "./internal/hold.ts";
import { NewestCall } from "./internal/newest.ts";

/** See {@link singleton}. */
export type SingletonMode = "skip" | "coalesce" | "cancel";

/** Options of {@link singleton}. All calls of a name must share mode, `ttl` and `wait`. */
export interface SingletonOptions<Mode extends SingletonMode = SingletonMode>
  extends Omit<NotedOptions, "autoExtend" | "wakeUp"> {
  /** See {@link singleton}. */
  readonly mode: Mode;
  /**
   * How long to wait for the running job, in ms. Default: with `coalesce` its `maxHold` and the ttl, with `cancel`
   * twice the ttl, and with `skip`, or while no endpoint shows a running job, as the client.
   */
  readonly wait?: number | undefined;
}

const { autoExtend: _extend, wakeUp: _wakeUp, ...usual } = notedSchema;
const schema: Schema<SingletonOptions> = { ...usual, mode: oneOf("skip", "coalesce", "cancel") };

/** The argument of a job. */
export interface SingletonContext {
  /** Larger than the fence of every earlier job of this name. */
  readonly fence: number;
  /** Aborts when the lock is lost, and with `cancel`, by an `AbortError`, when a newer call has come. */
  readonly signal: AbortSignal;
  /** The call's random name, for `replacedBy`. */
  readonly id: string;
  /** ms of the lock's validity that remain. */
  remaining(): number;
}

/** The result with `skip`. */
export type SkipOutcome<Value> = { readonly ran: true; readonly value: Value } | { readonly ran: false };

/** The result with `coalesce` and `cancel`. */
export type ReplaceOutcome<Value> =
  | { readonly ran: true; readonly value: Value }
  | {
      readonly ran: false;
      /** The `id` of a newer call, which may have been replaced in its turn. */
      readonly replacedBy: string;
      /** Whether the job had begun, and was cancelled. */
      readonly began: boolean;
    };

/** The result of {@link singleton}. */
export type SingletonOutcome<Mode extends SingletonMode, Value> = Mode extends "skip"
  ? SkipOutcome<Value>
  : ReplaceOutcome<Value>;

/** The function that {@link singleton} runs. */
export type Job<Value> = (context: SingletonContext) => Promise<Value> | Value;

/**
 * Runs `job` under a lock, one at a time on all replicas. A call's mode decides what happens if another job is running:
 *
 * - `skip`: it returns at once.
 * - `coalesce`: it waits, unless a newer call comes and replaces it.
 * - `cancel`: like `coalesce`, and the running job is told to end, after half of the ttl at the latest.
 *
 * If the last call fails or its process dies, no job stands for the calls that it has replaced.
 *
 * @param name the plain lock of this name is used
 * @throws LockHeldError when the other job still has the lock after `wait`. Not with `skip`
 * @throws QuorumError when too few endpoints answered. The job did not run
 * @throws LockLostError when the lock was lost, or newer calls may have come and gone while the process was frozen
 * @throws the job's error, or the signal's reason. The signal does not end the job
 * @example
 * await singleton(redlock, `index:${shop}`, { mode: "cancel", ttl: 2_000 }, ({ signal, fence }) =>
 *   index(shop, { signal, fence }),
 * );
 */
export async function singleton<Mode extends SingletonMode, Value>(
  redlock: LockClient,
  name: string,
  options: SingletonOptions<Mode>,
  job: Job<Value>,
): Promise<SingletonOutcome<Mode, Value>> {
  checkCall('singleton(redlock, name, { mode: "skip" }, job)', { redlock, name, options, job });
  checkName("name", name);
  const { mode, ...given } = checkSyncOptions("singleton", options as SingletonOptions, schema, {
    required: ["mode"],
  });
  const { signal, deadline, note, ...lockOptions } = given;
  const { ttl, maxHold, wait: patience } = settingsOf(redlock, lockOptions);
  const wait = { skip: undefined, coalesce: maxHold + ttl, cancel: 2 * ttl }[mode];
  const settings = settingsOf(redlock, { wait }, lockOptions, {
    fencing: true,
    autoExtend: mode !== "cancel",
  });
  const call: Call = {
    // Nobody publishes that a newer call has come.
    settings: { ...settings, wakeUp: undefined },
    name,
    options: { signal, deadline, note },
    patience,
  };
  return (await (mode === "skip" ? skip(call, job) : replace(call, job, mode))) as SingletonOutcome<
    Mode,
    Value
  >;
}

interface Call {
  readonly settings: Settings;
  readonly name: string;
  readonly options: CallOptions;
  /** In ms, for an outage. */
  readonly patience: number;
}

/** If contenders got a part each, one of them shall get the lock. */
async function skip<Value>({ settings, name, options }: Call, job: Job<Value>): Promise<SkipOutcome<Value>> {
  const protocol = lockProtocol(settings, [name], options.note);
  protocol.next = ({ calls, elapsed }) => {
    if (holderOf(calls)) throw new LockHeldError([name], elapsed());
    return "pause";
  };
  const lock = await orHeld(acquire(settings, [name], options, protocol));
  if (lock instanceof LockHeldError) return { ran: false };
  return { ran: true, value: await run(lock, job, randomToken(settings.runtime)) };
}

async function replace<Value>(
  call: Call,
  job: Job<Value>,
  mode: SingletonMode,
): Promise<ReplaceOutcome<Value>> {
  const { settings, name, options } = call;
  // Until all earlier waiters have seen it.
  const kept = Math.min(maxTimerDelay, Math.ceil(settings.wait + 2 * settings.ttl));
  const newest = new NewestCall({ settings, kind: "singleton", name, ttl: kept, signal: options.signal });
  const told = new AbortController();
  let began = false;
  try {
    const lock = await acquireAsNewest(call, newest);
    if (lock) {
      if (mode === "cancel") extendUntilReplaced(lock, newest, told);
      began = true;
      return { ran: true, value: await run(lock, job, newest.id, told) };
    }
  } catch (error) {
    // It must not keep those before it from running.
    if (!began) await newest.withdraw();
    // A job may throw because it was told to end.
    const isAbort = Object(error).name === "AbortError";
    if (!began || !newest.newer || !isAbort) throw error;
  }
  return { ran: false, replacedBy: newest.newer!, began };
}

/** Undefined: a newer call has come. */
async function acquireAsNewest(
  { settings, name, options, patience }: Call,
  newest: NewestCall,
): Promise<Lock | undefined> {
  const { runtime } = settings;
  const { signal, deadline = Infinity } = options;
  // Nothing is announced after the deadline either.
  const limit = timeUntil(deadline, runtime);
  const waited = stopwatch(runtime);
  const remainingWait = () => Math.max(0, Math.min(settings.wait, limit) - waited());
  await newest.announce(Math.min(patience, settings.wait), limit);
  const lock = await acquireLooking({ ...settings, wait: remainingWait() }, name, options, {
    // If too few endpoints answer, the next round looks again.
    isOver: async () => !(await newest.isNewest(0)),
    patience,
  });
  if (!lock) return undefined;
  let mayRun = false;
  try {
    const isNewest = await newest.isNewest(Math.min(patience, remainingWait()), signal);
    for (const ended of [signal, lock.signal]) if (isNewest && ended?.aborted) throw ended.reason;
    mayRun = isNewest;
    return mayRun ? lock : undefined;
  } finally {
    if (!mayRun) await unlessAborted(lock[Symbol.asyncDispose](), signal);
  }
}

/** After that, the job has the remaining validity to end. */
function extendUntilReplaced(lock: Lock, newest: NewestCall, told: AbortController): void {
  lock.extendUntilEnd(async (ms) => {
    if (!(await newest.isNewest(0).catch(() => true))) {
      told.abort(new DOMException("a newer call has come", "AbortError"));
      throw told.signal.reason;
    }
    await lock.extend(ms);
  });
}

async function run<Value>(
  lock: Lock,
  job: Job<Value>,
  id: string,
  told: AbortController = new AbortController(),
): Promise<Value> {
  const { signal: lost } = lock;
  const stopListening = onAbort(lost, () => told.abort(lost.reason));
  try {
    if (lost.aborted) throw lost.reason;
    const remaining = () => lock.remaining();
    const value = await job({ fence: lock.fence!, signal: told.signal, id, remaining });
    if (lost.aborted) throw lost.reason;
    return value;
  } finally {
    stopListening();
    await lock[Symbol.asyncDispose]();
  }
}
