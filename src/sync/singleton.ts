import { onAbort, unlessAborted } from "../abort.ts";
import { checkType, oneOf, type Schema } from "../check.ts";
import { LockHeldError } from "../errors.ts";
import { acquire, orHeld } from "../lock/acquire.ts";
import { type LockClient, settingsOf } from "../lock/client.ts";
import { holderOf } from "../lock/contention.ts";
import { lockProtocol } from "../lock/fence.ts";
import type { Lock } from "../lock/lock.ts";
import { type Settings, timeUntil } from "../lock/options.ts";
import type { Protocol } from "../lock/protocol.ts";
import { maxTimerDelay, stopwatch } from "../runtime.ts";
import { acquireLooking } from "./internal/acquire-looking.ts";
import { checkName, checkSyncOptions, type NotedOptions, notedSchema } from "./internal/hold.ts";
import { NewestCall } from "./internal/newest.ts";

/** What a call of {@link singleton} does while another call's job runs. */
export type SingletonMode = "skip" | "coalesce" | "cancel";

/**
 * The mode of {@link singleton}, and the options of its lock. All calls of a name must use the same mode, `ttl` and `wait`:
 * only a job of mode `cancel` can be told to end. Another mode is no error, so that a deployment can change it.
 */
export interface SingletonOptions<Mode extends SingletonMode = SingletonMode>
  extends Omit<NotedOptions, "autoExtend" | "wakeUp"> {
  /**
   * `skip`: it returns at once. `coalesce`: it waits, unless a newer call comes. `cancel`: the same, and the job that runs is
   * told to end.
   */
  readonly mode: Mode;
  /**
   * How long to wait for the job that runs, in ms. Default: with `coalesce` its `maxHold` and the ttl; with `cancel` twice
   * the ttl, by when the lock of a job that does not end has expired. With `skip` only as long as it is not known whether
   * a job runs, by default as long as the client waits.
   */
  readonly wait?: number | undefined;
}

const { autoExtend: _extend, wakeUp: _wakeUp, ...usual } = notedSchema;
const schema: Schema<SingletonOptions> = { ...usual, mode: oneOf("skip", "coalesce", "cancel") };

/** What a job gets. */
export interface SingletonContext {
  /** Larger than that of every earlier job of this name, for the data that the job writes. */
  readonly fence: number;
  /** Aborts when the lock is lost; with `cancel` also, with an `AbortError`, when a newer call has come. */
  readonly signal: AbortSignal;
  /** The call, as `replacedBy` names it; random. */
  readonly id: string;
  /** ms of the lock's validity that remain. */
  remaining(): number;
}

/** With `skip`: whether the job ran here, and what it returned. */
export type SkipOutcome<Value> = { readonly ran: true; readonly value: Value } | { readonly ran: false };

/** With `coalesce` and `cancel`: what the job returned, or which newer call stands for this one. */
export type ReplaceOutcome<Value> =
  | { readonly ran: true; readonly value: Value }
  | {
      readonly ran: false;
      /** The `id` of a newer call. That one may have been replaced in its turn. */
      readonly replacedBy: string;
      /** Whether the job had begun, and was cancelled. */
      readonly began: boolean;
    };

/** What {@link singleton} resolves with. */
export type SingletonOutcome<Mode extends SingletonMode, Value> = Mode extends "skip"
  ? SkipOutcome<Value>
  : ReplaceOutcome<Value>;

/** What {@link singleton} runs. */
export type Job<Value> = (context: SingletonContext) => Promise<Value> | Value;

/**
 * Runs `job` under a lock, one at a time on all replicas. What a call does that finds another job at work is its mode:
 *
 * - `skip`: it returns at once;
 * - `coalesce`: it waits, and at most one waits: of several the newest, with its arguments. The others end as replaced;
 * - `cancel`: as `coalesce`, and the job that runs is told to end. It is told when its lock would be extended next, after
 *   half of the ttl at the latest, and its lock is not extended any more.
 *
 * A call is newer than every other that was announced on a quorum before it began; clocks do not decide. After the last call
 * a job begins that began after that call, unless that call fails or its process dies: then no job stands for those that
 * it has replaced.
 *
 * @param name the plain lock of this name is used
 * @throws LockHeldError when the other job still has the lock after `wait`; not with `skip`
 * @throws QuorumError when too few endpoints answered; the job did not run
 * @throws LockLostError when the lock was lost before the job had ended; or a newer call may have come and gone, while the
 * process was frozen
 * @throws TypeError | RangeError when an argument is wrong; nothing was sent
 * @throws what the job throws, or the reason of the signal that ends the waiting; the signal does not end the job
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
  checkName(name);
  const { mode, ...given } = checkSyncOptions("singleton", options as SingletonOptions, schema, {
    required: ["mode"],
  });
  checkType("job", job, "function");
  const { signal, deadline, note, ...lockOptions } = given;
  const { ttl, maxHold } = settingsOf(redlock, lockOptions);
  const wait = { skip: undefined, coalesce: maxHold + ttl, cancel: 2 * ttl }[mode];
  const settings = settingsOf(redlock, { wait }, lockOptions, {
    fencing: true,
    autoExtend: mode !== "cancel",
  });
  // It polls whatever the client does: nobody publishes that a newer call has come.
  const call = new Call({ ...settings, wakeUp: undefined }, name, { signal, deadline, note }, job);
  return (await (mode === "skip" ? call.skip() : call.replace(mode))) as SingletonOutcome<Mode, Value>;
}

/** One call of {@link singleton}. */
class Call<Value> {
  readonly #settings: Settings;
  readonly #name: string;
  readonly #options: Pick<NotedOptions, "signal" | "deadline" | "note">;
  readonly #job: Job<Value>;
  readonly #newest: NewestCall;
  /** Tells the job to end. */
  readonly #end = new AbortController();

  constructor(
    settings: Settings,
    name: string,
    options: Pick<NotedOptions, "signal" | "deadline" | "note">,
    job: Job<Value>,
  ) {
    const { wait, ttl } = settings;
    this.#settings = settings;
    this.#name = name;
    this.#options = options;
    this.#job = job;
    // It is kept until all that waited when it came have seen it.
    const kept = Math.min(maxTimerDelay, Math.ceil(wait + 2 * ttl));
    this.#newest = new NewestCall({ settings, kind: "singleton", name, ttl: kept, signal: options.signal });
  }

  async skip(): Promise<SkipOutcome<Value>> {
    const outcome = await orHeld(
      acquire(
        this.#settings,
        [this.#name],
        this.#options,
        unlessHeld(this.#settings, this.#name, this.#options.note),
      ),
    );
    if (outcome instanceof LockHeldError) return { ran: false };
    return { ran: true, value: await this.#run(outcome) };
  }

  async replace(mode: SingletonMode): Promise<ReplaceOutcome<Value>> {
    const newest = this.#newest;
    let began = false;
    try {
      const lock = await this.#acquire();
      if (lock) {
        if (mode === "cancel") this.#extendUntilReplaced(lock);
        began = true;
        return { ran: true, value: await this.#run(lock) };
      }
    } catch (error) {
      // A newer call that does not run must not keep those before it from running.
      if (!began) await newest.withdraw();
      // What it throws because it was told to end is no failure.
      if (!began || !newest.newer || !isAbort(error)) throw error;
    }
    return { ran: false, replacedBy: newest.newer!, began };
  }

  /** Announces the call and acquires the lock; undefined: a newer call has come. */
  async #acquire(): Promise<Lock | undefined> {
    const { wait, runtime } = this.#settings;
    const { deadline = Infinity } = this.#options;
    const newest = this.#newest;
    // Nothing is announced after the deadline either.
    const limit = timeUntil(deadline, runtime);
    const waited = stopwatch(runtime);
    const remainingWait = () => Math.max(0, Math.min(wait, limit) - waited());
    await newest.announce(remainingWait, () => limit - waited());
    const settings = { ...this.#settings, wait: remainingWait() };
    // Where too few endpoints have answered, the next round looks again.
    const isReplaced = async () => !(await newest.isNewest(0));
    const lock = await acquireLooking(settings, this.#name, this.#options, isReplaced);
    return lock && (await this.#mayRun(lock, remainingWait())) ? lock : undefined;
  }

  /** Whether no newer call has come meanwhile. If one has, or that is not known, the lock is released. */
  async #mayRun(lock: Lock, wait: number): Promise<boolean> {
    const { signal } = this.#options;
    let mayRun = false;
    try {
      const isNewest = await this.#newest.isNewest(wait, signal);
      for (const ended of [signal, lock.signal]) if (isNewest && ended?.aborted) throw ended.reason;
      mayRun = isNewest;
      return mayRun;
    } finally {
      if (!mayRun) await unlessAborted(lock[Symbol.asyncDispose](), signal);
    }
  }

  /** Extends the lock until a newer call has come. */
  #extendUntilReplaced(lock: Lock): void {
    const extend = async (ms: number) => {
      if (!(await this.#newest.isNewest(0).catch(() => true))) {
        this.#end.abort(new DOMException("a newer call has come", "AbortError"));
        // Ends the extensions. The validity that remains is what the job has left to end.
        throw this.#end.signal.reason;
      }
      await lock.extend(ms);
    };
    lock.extendUntilEnd(extend);
  }

  async #run(lock: Lock): Promise<Value> {
    const { signal: lost } = lock;
    const { signal } = this.#end;
    const lose = () => this.#end.abort(lost.reason);
    const stopListening = onAbort(lost, lose);
    try {
      if (lost.aborted) throw lost.reason;
      const value = await this.#job({
        fence: lock.fence!,
        signal,
        id: this.#newest.id,
        remaining: () => lock.remaining(),
      });
      if (lost.aborted) throw lost.reason;
      return value;
    } finally {
      stopListening();
      await lock[Symbol.asyncDispose]();
    }
  }
}

/** Gives up as soon as a quorum shows who holds it; where contenders got a part each, one of them shall get it. */
function unlessHeld(settings: Settings, name: string, note: string | undefined): Protocol {
  const protocol = lockProtocol(settings, [name], note);
  const waited = stopwatch(settings.runtime);
  protocol.next = ({ calls }) => {
    if (holderOf(calls) !== undefined) throw new LockHeldError([name], waited());
    return "pause";
  };
  return protocol;
}

function isAbort(error: unknown): boolean {
  return (error as { readonly name?: unknown } | undefined)?.name === "AbortError";
}
