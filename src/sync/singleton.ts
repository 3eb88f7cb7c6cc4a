import { onAbort } from "../abort.ts";
import { checkType, oneOf, type Schema } from "../check.ts";
import { LockHeldError, LockLostError } from "../errors.ts";
import { acquireWithRetry, type LockStrategy } from "../lock/acquire.ts";
import { autoExtend } from "../lock/auto-extend.ts";
import { type LockClient, settingsOf } from "../lock/client.ts";
import { holderSeen } from "../lock/contention.ts";
import { Lock } from "../lock/lock.ts";
import { type Settings, timeUntil } from "../lock/options.ts";
import { keyOf } from "../redis/keys.ts";
import { maxTimerDelay, stopwatch } from "../runtime.ts";
import { acquireLooking } from "./internal/acquire-looking.ts";
import { checkName, checkSyncOptions, type NotedOptions, notedSchema } from "./internal/hold.ts";
import {
  type Announcement,
  announce,
  announceNewest,
  type NewestContext,
  newAnnouncement,
  newerToken,
  tokenOf,
  withdraw,
} from "./internal/newest.ts";

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
  const wait = mode === "coalesce" ? maxHold + ttl : mode === "cancel" ? 2 * ttl : undefined;
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
  readonly #own: Announcement;
  readonly #context: NewestContext;
  /** ms since before the last round that has shown that this call is the newest. */
  #sinceNewest = () => 0;
  /** The newer call, once one was seen. */
  #newer: string | undefined;
  /** Aborts when a newer call was seen. */
  readonly #replaced = new AbortController();

  constructor(
    settings: Settings,
    name: string,
    options: Pick<NotedOptions, "signal" | "deadline" | "note">,
    job: Job<Value>,
  ) {
    const { prefix, wait, ttl, runtime } = settings;
    this.#settings = settings;
    this.#name = name;
    this.#options = options;
    this.#job = job;
    this.#own = newAnnouncement(runtime);
    this.#context = {
      settings,
      caller: "singleton",
      name,
      key: keyOf(prefix, "singleton", name),
      // Until all that waited when it came have seen it.
      ttl: Math.min(maxTimerDelay, Math.ceil(wait + 2 * ttl)),
      signal: options.signal,
    };
  }

  async skip(): Promise<SkipOutcome<Value>> {
    const outcome = await acquireWithRetry(
      this.#settings,
      [this.#name],
      this.#options,
      unlessHeld(this.#name),
    );
    if (outcome instanceof LockHeldError) return { ran: false };
    if (!(outcome instanceof Lock)) throw outcome;
    return { ran: true, value: await this.#run(outcome) };
  }

  async replace(mode: SingletonMode): Promise<ReplaceOutcome<Value>> {
    let began = false;
    try {
      const lock = await this.#acquire();
      if (!lock) return this.#outcome(began);
      if (mode === "cancel") this.#extendUntilReplaced(lock);
      began = true;
      return { ran: true, value: await this.#run(lock, mode === "cancel" && this.#replaced.signal) };
    } catch (error) {
      // What it throws because it was told to end is no failure.
      if (began && mode === "cancel" && this.#newer && isAbort(error)) return this.#outcome(began);
      // A newer call that does not run must not keep those before it from running.
      if (!began) await withdraw(this.#context, this.#own);
      throw error;
    }
  }

  #outcome(began: boolean): ReplaceOutcome<Value> {
    return { ran: false, replacedBy: this.#newer!, began };
  }

  /** Announces the call and acquires the lock; undefined: a newer call was announced. */
  async #acquire(): Promise<Lock | undefined> {
    const { wait, runtime } = this.#settings;
    const { deadline = Infinity } = this.#options;
    // Nothing is announced after the deadline either.
    const limit = Math.min(wait, timeUntil(deadline, runtime));
    const waited = stopwatch(runtime);
    const remainingWait = () => Math.max(0, limit - waited());
    this.#sinceNewest = (await announceNewest(this.#context, this.#own, remainingWait)).elapsed;
    const settings = { ...this.#settings, wait: remainingWait() };
    // Where too few endpoints have answered, the next round looks again.
    const looks = { look: () => this.#look(), enough: this.#replaced.signal };
    try {
      const lock = await acquireLooking(settings, this.#name, this.#options, looks);
      return (await this.#isReplacedUnder(lock, remainingWait)) ? undefined : lock;
    } catch (error) {
      if (this.#newer && !this.#options.signal?.aborted) return undefined;
      throw error;
    }
  }

  /** Whether a newer call has come meanwhile. Then, or where that is not known, the lock is released. */
  async #isReplacedUnder(lock: Lock, remainingWait: () => number): Promise<boolean> {
    const { signal } = this.#options;
    const sinceNewest = this.#sinceNewest;
    let mayRun = false;
    try {
      await this.#look(remainingWait());
      // Of a process that was frozen for so long, newer calls may have come, and their announcements expired.
      const isKnown = sinceNewest() < this.#context.ttl * (1 - this.#settings.driftFactor) - 2;
      if (!isKnown) throw new LockLostError([this.#name], "newer calls may have come and gone");
      if (signal?.aborted) throw signal.reason;
      if (!this.#newer && lock.signal.aborted) throw lock.signal.reason;
      mayRun = !this.#newer;
      return !mayRun;
    } finally {
      if (!mayRun) await lock[Symbol.asyncDispose]();
    }
  }

  /**
   * Notes it where a newer call has come. It announces the same call once more: a quorum grants that as long as no quorum
   * has a newer one. To read the key would not do: what a call that has failed since left at a minority would look newer,
   * and nobody would run.
   */
  async #look(remainingMs = 0): Promise<void> {
    // The caller's signal does not end the job.
    const context = { ...this.#context, signal: undefined };
    const { isLast, round } = await announce(context, this.#own, remainingMs);
    if (isLast) this.#sinceNewest = round.elapsed;
    if (isLast || this.#newer) return;
    this.#newer = newerToken(round);
    this.#replaced.abort(new DOMException("a newer call has come", "AbortError"));
  }

  /** Extends the lock until a newer call has come. */
  #extendUntilReplaced(lock: Lock): void {
    const { runtime, maxHold, backoff } = this.#settings;
    const extend = async (ms: number) => {
      await this.#look().catch(() => undefined);
      // Ends the extensions. The validity that remains is what the job has left to end.
      if (this.#newer) throw this.#replaced.signal.reason;
      await lock.extend(ms);
    };
    void autoExtend(lock.parts().validity, { runtime, maxHold, backoff, ttl: () => lock.ttl, extend });
  }

  /** @param cancel aborts when the job is to end */
  async #run(lock: Lock, cancel: AbortSignal | false = false): Promise<Value> {
    const controller = new AbortController();
    const ends = [lock.signal, ...(cancel ? [cancel] : [])].map((signal) => {
      const abort = () => controller.abort(signal.reason);
      if (signal.aborted) abort();
      return onAbort(signal, abort);
    });
    try {
      const value = await this.#job({
        fence: lock.fence!,
        signal: controller.signal,
        id: tokenOf(this.#own.text),
        remaining: () => lock.remaining(),
      });
      const { signal } = lock;
      if (signal.aborted) throw signal.reason;
      return value;
    } finally {
      for (const end of ends) end();
      await lock[Symbol.asyncDispose]();
    }
  }
}

/** Gives up as soon as a quorum shows who holds it; where contenders got a part each, one of them shall get it. */
function unlessHeld(name: string): LockStrategy {
  return {
    afterFailedRound: ({ answers }, { waited }) =>
      holderSeen(answers) === undefined
        ? undefined
        : { type: "fail", error: new LockHeldError([name], waited) },
  };
}

function isAbort(error: unknown): boolean {
  return (error as { readonly name?: unknown } | undefined)?.name === "AbortError";
}
