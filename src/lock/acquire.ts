import { LockHeldError, QuorumError, type RedlockError } from "../errors.ts";
import { emit } from "../events.ts";
import { pauses } from "../quorum/backoff.ts";
import { rollback } from "../quorum/rollback.ts";
import { quorumOf, type Round, type RoundResult, runRound, unlessAborted } from "../quorum/round.ts";
import {
  acquire,
  type Call,
  type Register,
  type RegisterAnswer,
  type RequestCost,
  raiseFence,
  release,
} from "../redis/register.ts";
import { sleep, stopwatch } from "../runtime.ts";
import { type HoldOperations, Lock } from "./lock.ts";
import {
  acquiredRegister,
  counterTtl,
  type LockRequest,
  newLockRequest,
  rollbackRegister,
  tombstoneRetention,
} from "./lock-request.ts";
import { type AcquireOptions, runInBackground, type Settings, timeUntil } from "./options.ts";

/** Rules by which something else than a plain lock is contended for; what is left out is as for a lock. */
export interface LockStrategy extends HoldOperations {
  /** Keys at which the next round is to take it. */
  keys?(): readonly string[];
  /** Takes it on one endpoint. */
  acquire?(call: Call, register: Register, ttl: number): Promise<RegisterAnswer>;
  /** Of the round's places those at which it was granted. */
  grantedKeys?(round: Round<RegisterAnswer>): readonly string[];
  /**
   * What a round in vain means: `wait`: the next follows after the backoff's pause, or after so many ms; `again`: at
   * once, even after `wait`; an error: no other does.
   */
  afterFailedRound(
    round: Round<RegisterAnswer>,
    outlook: FailedRound,
  ): "again" | "wait" | number | RedlockError;
}

/** What is known after a round in vain. */
export interface FailedRound {
  /** Others hold it, as far as that is shown. */
  readonly held: boolean;
  /** ms until it may be free, where the endpoints told so. */
  readonly retryAfter: number | undefined;
  /** ms that are left to wait. */
  readonly remainingWait: number;
  /** ms that the waiting has taken. */
  readonly waited: number;
}

/** No clock of use says more, in ms since 1970: the year 144 683, half way to where integers end. */
const latestTime = 2 ** 52;

/** Holds rounds until one grants the lock or the waiting is over; resolves with the last round's outcome. */
export async function acquireWithRetry(
  settings: Settings,
  resources: readonly string[],
  { signal, token: owner = "", deadline = Infinity }: AcquireOptions,
  strategy?: LockStrategy,
): Promise<Lock | RedlockError> {
  const { runtime, prefix, onEvent } = settings;
  const elapsed = stopwatch(runtime);
  // Turned into a duration at once: from here on only elapsed time counts.
  const limit = timeUntil(deadline, runtime);
  const fenceRetention = settings.fencing ? settings.fenceRetention : 0;
  const next = pauses(settings.backoff, runtime);
  const cost: RequestCost = { requests: 0, commands: 0 };
  const rollbacks = new Set<Promise<void>>();
  let waits = true;
  const withdrawing = { ...settings, goesOn: () => waits && !signal?.aborted };

  for (let attempts = 1; ; attempts += 1) {
    if (signal?.aborted) throw signal.reason;
    // A fresh nonce in every round: HTTP keeps no order, so a rollback may overtake the next round's request.
    const grant = newLockRequest(runtime, {
      resources,
      prefix,
      owner,
      fenceRetention,
      keys: strategy?.keys?.(),
    });
    // The last round hears every endpoint out: it tells contention from an outage.
    const isLast = Math.min(settings.wait, limit) - elapsed() <= settings.timeout;
    const { lock, result, round, last } = await attempt(
      settings,
      grant,
      signal,
      limit - elapsed(),
      cost,
      !isLast,
      strategy,
    );
    const progress = { resources, attempts, elapsed: elapsed(), ...cost };
    if (lock) {
      emit(onEvent, { type: "acquired", ...progress, fence: lock.fence });
      if (settings.autoExtend) lock.keepExtending();
      return lock;
    }

    const register = rollbackRegister(grant);
    const giveBack = strategy?.release ?? release;
    const rolledBack = rollback(withdrawing, round, (call) =>
      giveBack(call, register, tombstoneRetention),
    ).done;
    rollbacks.add(rolledBack);
    void rolledBack.then(() => rollbacks.delete(rolledBack));
    const inBackground = runInBackground(settings, rolledBack);
    if (signal?.aborted) throw signal.reason;

    const remainingWait = Math.min(settings.wait, limit) - elapsed();
    const held = result === "refused";
    const retryAfter = held ? timeUntilFree(round) : undefined;
    const judged =
      strategy?.afterFailedRound(round, { held, retryAfter, remainingWait, waited: elapsed() }) ?? "wait";
    const own = typeof judged === "number" ? judged : undefined;
    // A clock may be too coarse to see the last part of a ms pass.
    const most = Math.min(Math.max(remainingWait, 1), retryAfter ?? Infinity);
    const pause = judged === "again" ? 0 : Math.min(own ?? next(round.elapsed()), most);
    const goesOn = judged === "again" || (!(judged instanceof Error) && remainingWait > 0);
    if (held) emit(onEvent, { type: "contended", ...progress, retryIn: goesOn ? pause : undefined });
    if (!goesOn) {
      waits = false;
      // Nothing else keeps the rollbacks alive once the caller has its answer.
      if (!inBackground) await Promise.all(rollbacks);
      if (judged instanceof Error) return judged;
      // A clock may have ended the waiting behind a round that was cut short: by now more may be known.
      if (held || isRefused(round)) return new LockHeldError(resources, elapsed(), retryAfter);
      return new QuorumError("acquire", resources, last.votes(), result === "granted");
    }
    await sleep(runtime, pause, signal);
  }
}

/** What one attempt came to. Without a lock, `granted` means that it came too late. */
interface Attempt {
  readonly lock?: Lock;
  /** Undefined when the caller's signal ended it. */
  readonly result: RoundResult | undefined;
  readonly round: Round<RegisterAnswer>;
  /** The round that decided it: `round`, or the one that was to raise the fence. */
  readonly last: Round<RegisterAnswer>;
}

async function attempt(
  settings: Settings,
  asked: LockRequest,
  signal: AbortSignal | undefined,
  limit: number,
  cost: RequestCost,
  cutsShort: boolean,
  strategy: LockStrategy | undefined,
): Promise<Attempt> {
  const { endpoints, runtime, ttl } = settings;
  const least = Math.floor(runtime.now());
  // Counters would follow a clock up to where integers end, and nobody could draw a fence any more.
  if (!(Math.abs(least) < latestTime)) throw new RangeError(`the clock says ${least}, which is no time`);
  // An answer after the ttl would be of no use.
  const timeout = Math.min(settings.timeout, ttl);
  const register = acquiredRegister(asked);
  const retention = asked.fenceRetention && counterTtl(asked, ttl);
  const round = runRound(
    settings,
    timeout,
    (call) => strategy?.acquire?.(call, register, ttl) ?? acquire(call, register, ttl, { least, retention }),
    cost,
    cutsShort,
  );
  let last = round;
  let result = await unlessAborted(round, signal);
  let fence: number | undefined;
  if (result === "granted" && retention > 0) {
    const fences = round.answers.flatMap((answer) => (answer as RegisterAnswer)?.fence ?? []);
    const highest = Math.max(...fences);
    fence = highest;
    // A later holder meets at least one endpoint of this quorum, and must find no less than the fence there.
    if (fences.filter((drawn) => drawn === highest).length < quorumOf(endpoints.length)) {
      last = runRound(
        settings,
        timeout,
        (call) => raiseFence(call, register, { least: highest, retention }),
        cost,
      );
      result = await unlessAborted(last, signal);
      // Refused here means lost between the two rounds, not held from the start.
      if (result === "refused") result = "unavailable";
    }
  }
  if (result === "granted") {
    const grant = strategy?.grantedKeys ? { ...asked, keys: strategy.grantedKeys(round) } : asked;
    const lock = new Lock(settings, grant, {
      ttl,
      elapsed: round.elapsed,
      fence,
      limit,
      round,
      operations: strategy,
    });
    if (lock.remaining() > 0) return { lock, result, round, last };
  }
  return { result, round, last };
}

function isRefused({ answers }: Round<RegisterAnswer>): boolean {
  const refusals = answers.filter((answer) => answer?.outcome === "held");
  return refusals.length > answers.length - quorumOf(answers.length);
}

/** ms until so many endpoints may be free that a quorum is possible, as far as they said. */
function timeUntilFree({ answers }: Round<RegisterAnswer>): number | undefined {
  const held = answers.flatMap((answer) => (answer?.outcome === "held" ? [answer.retryAfter ?? 0] : []));
  const missing = quorumOf(answers.length) - (answers.length - held.length);
  const expiry = held.sort((a, b) => a - b)[missing - 1] ?? 0;
  return expiry > 0 ? expiry : undefined;
}
