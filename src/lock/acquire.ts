import { unlessAborted } from "../abort.ts";
import type { EndpointCall } from "../endpoints/endpoint-call.ts";
import { LockHeldError, QuorumError, type RedlockError } from "../errors.ts";
import { emit, newId, type OperationEvent } from "../events.ts";
import { type FailedAttempt, type Next, type Progress, retry } from "../quorum/retry.ts";
import { isHopeless, type Round, runRound } from "../quorum/round.ts";
import { isVeto, type RoundResult } from "../quorum/tally.ts";
import { undoQuietly } from "../quorum/undo.ts";
import { type Cell, type CellAnswer, claim } from "../redis/cell.ts";
import { randomToken, stopwatch } from "../runtime.ts";
import { holderHash, holderOf, timeUntilFree } from "./contention.ts";
import { Fence, leastFence } from "./fence.ts";
import { type HoldOperations, listenFor, releaseFunctionOf } from "./hold-operations.ts";
import { Lock } from "./lock.ts";
import { acquiredCell, type LockClaim, lockKeys, tombstoneRetention } from "./lock-claim.ts";
import { type AcquireOptions, type Settings, timeUntil } from "./options.ts";
import type { WakeUpListener } from "./wake-up/wake-up.ts";

/** How a synchronizer differs from a plain lock. What it leaves out is done as for a lock. */
export interface LockStrategy<Reply extends CellAnswer = CellAnswer> extends HoldOperations {
  /** How the error says that it is held; default: by someone else. */
  readonly heldText?: string;
  /** The keys that the next round claims. */
  keys?(): readonly string[];
  /** Claims them on one endpoint. */
  acquire?(call: EndpointCall, cell: Cell, ttl: number): Promise<Reply>;
  /** Hears of a granted round, and says which of its keys were granted. Default, or undefined: all. */
  granted?(round: Round<Reply>): readonly string[] | undefined;
  /** What follows a failed round: see {@link Next}, or an error. Default: a pause. */
  afterFailedRound?(round: Round<Reply>, failed: FailedRound): Next | RedlockError;
}

/** What is known after a failed round. */
export interface FailedRound {
  /** Whether the round has shown that others hold it. */
  readonly isHeld: boolean;
  /** ms until it may be free, where the endpoints returned that. */
  readonly retryAfter: number | undefined;
  /** ms of `wait` and deadline that remain. */
  readonly remainingWait: number;
  /** ms since the call. */
  readonly waited: number;
}

/**
 * Runs rounds until one acquires the lock or the waiting is over.
 *
 * @throws LockHeldError | QuorumError | RedlockError what the last round, or the strategy, ended with
 * @throws the signal's reason when it aborts
 */
export function acquireWithRetry(
  settings: Settings,
  resources: readonly string[],
  options: AcquireOptions,
  strategy?: LockStrategy,
): Promise<Lock> {
  return new Acquisition(settings, resources, options, strategy).run();
}

/** What it resolves with; or its error, where others hold the lock. */
export async function orHeld<Value>(acquiring: Promise<Value>): Promise<Value | LockHeldError> {
  try {
    return await acquiring;
  } catch (error) {
    if (error instanceof LockHeldError) return error;
    throw error;
  }
}

/** A round that claims, and the second one where that had to raise the fence. */
interface RoundAttempt {
  readonly lockClaim: LockClaim;
  readonly lock?: Lock | undefined;
  /** `granted`, but no lock: the answers came too late. Undefined: the caller's signal aborted it. */
  readonly result: RoundResult | undefined;
  readonly round: Round<CellAnswer>;
  /** The last of its rounds, which decided: `round`, or the one that raised the fence. */
  readonly last: Round<CellAnswer>;
}

/** What the events of a call have in common. */
type Facts = OperationEvent & { readonly rounds: number };

/** One call of `acquire`: what its rounds have in common. */
class Acquisition {
  readonly #settings: Settings;
  readonly #resources: readonly string[];
  readonly #options: AcquireOptions;
  readonly #strategy: LockStrategy | undefined;
  readonly #lockKeys: readonly string[];
  readonly #id = newId();
  readonly #elapsed: () => number;
  #rounds = 0;
  /** Whether each round so far was granted by some endpoint. */
  #isAlwaysSplit = true;
  #listener: WakeUpListener | undefined;
  /** What its rounds have ended with. */
  #failure: RedlockError | undefined;

  constructor(
    settings: Settings,
    resources: readonly string[],
    options: AcquireOptions,
    strategy: LockStrategy | undefined,
  ) {
    this.#settings = settings;
    this.#resources = resources;
    this.#options = options;
    this.#strategy = strategy;
    this.#lockKeys = lockKeys(settings.prefix, resources);
    this.#elapsed = stopwatch(settings.runtime);
  }

  /** Runs the call, and reports its beginning and its end. */
  async run(): Promise<Lock> {
    const settings = this.#settings;
    const { onEvent, runtime } = settings;
    const { signal, deadline = Infinity } = this.#options;
    const elapsed = this.#elapsed;
    emit(onEvent, { type: "acquiring", id: this.#id, resources: this.#resources });
    try {
      const limit = timeUntil(deadline, runtime);
      const lock = await retry(settings, { signal, limit, elapsed }, (progress) => this.#attempt(progress));
      const { note } = this.#options;
      lock.activate(() => ({ type: "acquired", ...this.#facts(), note, fence: lock.fence }));
      return lock;
    } catch (error) {
      const failure = this.#failure;
      if (failure) emit(onEvent, { type: "notAcquired", ...this.#facts(), error: failure });
      else emit(onEvent, { type: "aborted", ...this.#facts(), error });
      throw error;
    } finally {
      this.#listener?.close();
    }
  }

  #facts(): Facts {
    const elapsed = this.#elapsed();
    return { id: this.#id, resources: this.#resources, rounds: this.#rounds, elapsed };
  }

  /** Waits for its turn, and sends a round. */
  async #attempt(progress: Progress): Promise<{ readonly value: Lock } | FailedAttempt<Lock>> {
    const { admission, runtime } = this.#settings;
    const { signal } = this.#options;
    if (!admission.enter()) await admission.wait({ runtime, ms: progress.remaining(), signal });
    try {
      const attempt = await this.#sendRound(progress);
      return attempt.lock ? { value: attempt.lock } : this.#failed(attempt, progress);
    } finally {
      admission.leave();
    }
  }

  /** The nonce is fresh in every round: HTTP keeps no order, so a rollback may overtake the next round's request. */
  #newClaim(): LockClaim {
    const { runtime, prefix } = this.#settings;
    return {
      resources: this.#resources,
      prefix,
      keys: this.#strategy?.keys?.() ?? this.#lockKeys,
      nonce: randomToken(runtime),
      note: this.#options.note,
    };
  }

  /** Claims on every endpoint, and where that is granted without a common fence, raises the counters to the highest. */
  async #sendRound(progress: Progress): Promise<RoundAttempt> {
    const { signal } = this.#options;
    if (signal?.aborted) throw signal.reason;
    this.#rounds += 1;
    const lockClaim = this.#newClaim();
    const { timeout, ttl, runtime, fencing, fenceRetention } = this.#settings;
    // The last round is not cut short, so that it can tell contention from an outage.
    const isLast = progress.remaining() <= timeout;
    const limit = progress.untilDeadline();
    const fence = fencing ? new Fence(leastFence(runtime), fenceRetention) : undefined;
    const cell = acquiredCell(lockClaim, fencing);
    // Only a waiter needs to know the holder: the first round often finds none, and would ask Redis before 7.0 twice.
    const details = { terms: fence?.terms(ttl), readsOther: this.#rounds > 1 };
    const claimOne = (call: EndpointCall) =>
      this.#strategy?.acquire?.(call, cell, ttl) ?? claim(call, cell, ttl, details);
    // The settings' timeout counts, unless the ttl is shorter: an answer that comes after it is useless.
    const options = { timeout: ttl, isHasty: !isLast, yields: true };
    const round = runRound(this.#settings, claimOne, options);
    const result = await unlessAborted(round.result, signal);
    if (result !== "granted") return { lockClaim, result, round, last: round };
    const raise = fence?.bringToQuorum(this.#settings, round, { cell, ttl });
    const last = raise ?? round;
    if (raise) {
      const raised = await unlessAborted(raise.result, signal);
      // Refused here means lost between the two rounds, not held from the start.
      // Stryker disable next-line StringLiteral: it is only compared with granted and refused
      if (raised !== "granted") return { lockClaim, result: raised && "unavailable", round, last };
    }
    const lock = this.#lockOf(lockClaim, round, limit, fence);
    return { lockClaim, result, round, last, lock: lock.remaining() > 0 ? lock : undefined };
  }

  #lockOf(lockClaim: LockClaim, round: Round<CellAnswer>, limit: number, fence: Fence | undefined): Lock {
    const { ttl } = this.#settings;
    const strategy = this.#strategy;
    const keys = strategy?.granted?.(round);
    const granted = keys ? { ...lockClaim, keys } : lockClaim;
    const state = { id: this.#id, ttl, fence, limit, round, operations: strategy };
    return new Lock(this.#settings, granted, state);
  }

  #failed(attempt: RoundAttempt, progress: Progress): FailedAttempt<Lock> {
    const { result, round, last } = attempt;
    const { onEvent } = this.#settings;
    const isHeld = result === "refused";
    this.#isAlwaysSplit &&= round.calls.some(({ answer }) => answer?.outcome === "granted");
    const retryAfter = isHeld ? timeUntilFree(round.calls) : undefined;
    const waited = progress.elapsed();
    const failed: FailedRound = { isHeld, retryAfter, remainingWait: progress.remaining(), waited };
    this.#rollBack(attempt, progress);
    const isAborted = result === undefined;
    const following = (!isAborted && this.#strategy?.afterFailedRound?.(round, failed)) || "pause";
    const error = following instanceof Error ? following : undefined;
    return {
      next: following instanceof Error || isHopeless(last.votes()) ? "end" : following,
      retryAfter,
      took: round.elapsed(),
      holderHash: holderHash(round.calls),
      report: (retryIn) => {
        // Without a hook nobody needs to know the holder.
        if (isHeld && onEvent) {
          const holder = holderOf(round.calls);
          emit(onEvent, { type: "contended", ...this.#facts(), retryIn, holder });
        }
      },
      rest: (poll, longest) => this.#rest(round, poll, longest),
      end: () => {
        this.#failure = error ?? this.#errorOf(attempt, retryAfter);
        throw this.#failure;
      },
    };
  }

  /** Rolls back a round at every endpoint where it may have acquired. What raised the fence has left nothing but counters. */
  #rollBack({ lockClaim, result, round }: RoundAttempt, progress: Progress): void {
    // It has a tombstone where a late request heeds one.
    const cell = acquiredCell(lockClaim, this.#settings.fencing);
    // Refused means that others have a quorum, so this rollback frees nothing that waiters could get. If it published a
    // message, waiters would wake each other again and again.
    const settings = result === "refused" ? { ...this.#settings, wakeUp: undefined } : this.#settings;
    const releaseOne = releaseFunctionOf(settings, this.#resources, this.#strategy);
    const undone = undoQuietly(this.#settings, round.calls, (call, claim) => {
      // A synchronizer's tickets may be claimed once more. Of a lock, a request that is over needs no tombstone.
      const needsTombstone = this.#strategy !== undefined || !claim.isOver;
      return releaseOne(call, needsTombstone ? cell : { ...cell, tombstone: undefined }, tombstoneRetention);
    });
    progress.keep(undone.done);
  }

  /** Waits for the message of a release, where others hold the lock and publish one. Else undefined: the loop pauses. */
  #rest(round: Round<CellAnswer>, poll: number, longest: number): Promise<void> | undefined {
    const { signal } = this.#options;
    const outcomes = round.calls.map(({ answer }) => answer?.outcome);
    if (!outcomes.includes("held") || poll === 0) return undefined;
    this.#listener ??= listenFor(this.#settings, this.#resources, this.#strategy);
    // Those that got a part each have kept each other out: nobody may hold it, so nobody may publish its release.
    const most = outcomes.includes("granted") ? poll : longest;
    return this.#listener?.wait({ round, poll, longest: most, signal });
  }

  #errorOf({ result, round, last }: RoundAttempt, retryAfter: number | undefined): RedlockError {
    // A round that was cut short may turn out to be the last. Its rollback has ended since, and more answers are known.
    if (result !== "refused" && !isRefused(round)) {
      return new QuorumError("acquire", this.#resources, last.votes(), {
        late: result === "granted",
        ttl: this.#settings.ttl,
      });
    }
    // Where two endpoints are one database, a round's own claim at the one is in its way at the other.
    const how = this.#strategy?.heldText ?? (this.#isAlwaysSplit ? splitHint : undefined);
    const holder = holderOf(round.calls);
    return new LockHeldError(this.#resources, this.#elapsed(), { retryAfter, holder, how });
  }
}

const splitHint = " is held by someone else, or two endpoints are one database (npx redlock-edge doctor)";

function isRefused(round: Round<CellAnswer>): boolean {
  return isVeto(round.answers().filter(({ outcome }) => outcome === "held").length, round.calls.length);
}
