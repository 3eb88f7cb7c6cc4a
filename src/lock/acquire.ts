import type { EndpointRequest, RequestCost } from "../endpoints/endpoint-request.ts";
import { LockHeldError, QuorumError, type RedlockError } from "../errors.ts";
import { emit, newId, type OperationEvent } from "../events.ts";
import { pauses, type Sighting } from "../quorum/backoff.ts";
import { rollback } from "../quorum/rollback.ts";
import { isHopeless, type Round, runRound, unlessAborted } from "../quorum/round.ts";
import { quorumOf, type RoundResult } from "../quorum/tally.ts";
import { turnsOf } from "../quorum/turns.ts";
import { type Cell, type CellAnswer, claim, keep } from "../redis/cell.ts";
import { randomToken, runInBackground, sleep, stopwatch } from "../runtime.ts";
import { holderSeen, timeUntilFree } from "./contention.ts";
import { highestFence, leastFence, voteForFence } from "./fence.ts";
import { type HoldOperations, listenFor, releaseFunctionOf } from "./hold-operations.ts";
import { Lock } from "./lock.ts";
import { acquiredCell, counterTtl, type LockRequest, tombstoneRetention } from "./lock-request.ts";
import { type AcquireOptions, type Settings, timeUntil } from "./options.ts";
import type { WakeUpListener } from "./wake-up/wake-up.ts";

/** How a synchronizer differs from a plain lock; what is left out is as for a lock. */
export interface LockStrategy<Reply extends CellAnswer = CellAnswer> extends HoldOperations {
  /** How the error says that it is held; default: by someone else. */
  readonly held?: string;
  /** The keys that the next round is to acquire. */
  keys?(): readonly string[];
  /** Acquires on one endpoint. */
  acquire?(call: EndpointRequest, cell: Cell, ttl: number): Promise<Reply>;
  /** Which of the round's keys were granted. */
  grantedKeys?(round: Round<Reply>): readonly string[];
  /** What to do after a failed round. Default: to back off as a lock does. */
  afterFailedRound?(round: Round<Reply>, failed: FailedRound): NextStep | undefined;
}

/** What follows a failed round: a pause of so many ms, another round at once even past `wait`, or an error. */
export type NextStep =
  | { readonly type: "pause"; readonly ms: number }
  | { readonly type: "retry" }
  | { readonly type: "fail"; readonly error: RedlockError };

/** What is known after a failed round. */
export interface FailedRound {
  /** Whether the round has shown that others hold it. */
  readonly held: boolean;
  /** ms until it may be free, where the endpoints returned that. */
  readonly retryAfter: number | undefined;
  /** ms of `wait` and deadline that remain. */
  readonly remainingWait: number;
  /** ms since the call. */
  readonly waited: number;
}

/** Runs rounds until one acquires the lock or the waiting is over. Resolves with the lock, or why there is none. */
export function acquireWithRetry(
  settings: Settings,
  resources: readonly string[],
  options: AcquireOptions,
  strategy?: LockStrategy,
): Promise<Lock | RedlockError> {
  return new Acquisition(settings, resources, options, strategy).run();
}

/** One attempt: a round, and where needed a second one that raises the fence. */
interface Attempt {
  readonly request: LockRequest;
  readonly lock?: Lock;
  /** `granted` without a lock: the answers came too late. Undefined: the caller's signal aborted it. */
  readonly result: RoundResult | undefined;
  readonly round: Round<CellAnswer>;
  /** The round that decided: `round`, or the one that was to raise the fence. */
  readonly last: Round<CellAnswer>;
}

/** How long to pause before the next round, in ms: without a message, and at most. */
interface PauseBounds {
  readonly poll: number;
  readonly longest: number;
}

/** What follows a failed attempt. The error is made once the rollbacks are done: by then more may be known. */
type AfterFailure = { readonly pause: PauseBounds } | { readonly pause?: never; makeError(): RedlockError };

/** What the events of a call have in common. */
type Progress = OperationEvent & { readonly rounds: number };

/** One call of `acquire`: its rounds, its pauses, and its rollbacks. */
class Acquisition {
  readonly #settings: Settings;
  readonly #resources: readonly string[];
  readonly #id = newId();
  readonly #signal: AbortSignal | undefined;
  readonly #strategy: LockStrategy | undefined;
  readonly #elapsed: () => number;
  readonly #deadline: number;
  /** ms from the call to its deadline. A duration, so that from then on only elapsed time counts. */
  #limit = Infinity;
  readonly #nextPause: (took: number, seen: Sighting) => number;
  readonly #cost: RequestCost = { requests: 0, commands: 0 };
  readonly #rollbacks = new Set<Promise<void>>();
  #rounds = 0;
  #waits = true;
  /** Whether some endpoint has granted every round so far. */
  #isAlwaysSplit = true;
  #listener: WakeUpListener | undefined;

  constructor(
    settings: Settings,
    resources: readonly string[],
    { signal, deadline = Infinity }: AcquireOptions,
    strategy: LockStrategy | undefined,
  ) {
    this.#settings = settings;
    this.#resources = resources;
    this.#signal = signal;
    this.#strategy = strategy;
    this.#elapsed = stopwatch(settings.runtime);
    this.#deadline = deadline;
    this.#nextPause = pauses(settings.backoff, settings.runtime);
  }

  /** Runs the call, and reports its beginning and its end. */
  async run(): Promise<Lock | RedlockError> {
    const { onEvent } = this.#settings;
    emit(onEvent, { type: "acquiring", id: this.#id, resources: this.#resources });
    try {
      const outcome = await this.#acquire();
      if (outcome instanceof Lock)
        outcome.activate({ type: "acquired", ...this.#progress(), fence: outcome.fence });
      else emit(onEvent, { type: "notAcquired", ...this.#progress(), error: outcome });
      return outcome;
    } catch (error) {
      emit(onEvent, { type: "aborted", ...this.#progress(), error });
      throw error;
    } finally {
      this.#listener?.close();
    }
  }

  async #acquire(): Promise<Lock | RedlockError> {
    this.#limit = timeUntil(this.#deadline, this.#settings.runtime);
    for (;;) {
      const { endpoints, runtime } = this.#settings;
      const patience = { runtime, ms: this.#remainingWait, signal: this.#signal };
      const attempt = await turnsOf(endpoints).take(() => this.#attempt(), patience);
      if (attempt.lock) return attempt.lock;
      const inBackground = this.#rollBack(attempt);
      if (this.#signal?.aborted) throw this.#signal.reason;
      const next = this.#afterFailure(attempt);
      if (next.pause) {
        await this.#pause(attempt, next.pause);
        continue;
      }
      this.#waits = false;
      // Nothing else keeps the rollbacks alive once the caller has its answer.
      if (!inBackground) await Promise.all(this.#rollbacks);
      return next.makeError();
    }
  }

  /** Waits for the next round: for a message where others hold it and publish, else for the backoff's pause. */
  async #pause({ round }: Attempt, { poll, longest }: PauseBounds): Promise<void> {
    const signal = this.#signal;
    const outcomes = round.answers.map((answer) => answer?.outcome);
    if (outcomes.includes("held") && poll > 0) {
      this.#listener ??= listenFor(this.#settings, this.#resources, this.#strategy);
      if (this.#listener)
        return this.#listener.wait({
          round,
          mayBeSplit: outcomes.includes("granted"),
          poll,
          longest,
          signal,
        });
    }
    await sleep(this.#settings.runtime, poll, signal);
  }

  #progress(): Progress {
    return {
      id: this.#id,
      resources: this.#resources,
      rounds: this.#rounds,
      elapsed: this.#elapsed(),
      ...this.#cost,
    };
  }

  /** With a fresh nonce in every round: HTTP keeps no order, so a rollback may overtake the next round's request. */
  #newRequest(): LockRequest {
    const { runtime, prefix, fencing, fenceRetention } = this.#settings;
    return {
      resources: this.#resources,
      prefix,
      fenceRetention: fencing ? fenceRetention : 0,
      keys: this.#strategy?.keys?.(),
      nonce: randomToken(runtime),
    };
  }

  /** ms of `wait` and deadline that remain. */
  get #remainingWait(): number {
    return Math.min(this.#settings.wait, this.#limit) - this.#elapsed();
  }

  async #attempt(): Promise<Attempt> {
    if (this.#signal?.aborted) throw this.#signal.reason;
    this.#rounds += 1;
    const request = this.#newRequest();
    const { timeout, ttl, runtime } = this.#settings;
    // The last round waits for every endpoint, so that it can tell contention from an outage.
    const isLast = this.#remainingWait <= timeout;
    const limit = this.#limit - this.#elapsed();
    const least = leastFence(runtime);
    // An answer after the ttl would be useless.
    const bounded = { cost: this.#cost, timeout: ttl };
    const cell = acquiredCell(request);
    const retention = request.fenceRetention && counterTtl(request.fenceRetention, ttl);
    // A waiter looks who has it. The first round does not: nobody may have it, and Redis before 7.0 would be asked twice.
    const fencing = retention > 0 ? { least, retention } : undefined;
    const details = { fencing, looks: this.#rounds > 1 };
    const acquireOne = (call: EndpointRequest) =>
      this.#strategy?.acquire?.(call, cell, ttl) ?? claim(call, cell, ttl, details);
    const round = runRound(this.#settings, acquireOne, { ...bounded, cutsShort: !isLast, yields: true });
    let result = await unlessAborted(round, this.#signal);
    if (result !== "granted") return { request, result, round, last: round };
    let last = round;
    const drawn = fencing && highestFence(round);
    if (drawn && !drawn.isAtQuorum) {
      const { fence } = drawn;
      const raise = async (call: EndpointRequest) =>
        voteForFence(await keep(call, cell, 0, { fencing: { least: fence, retention } }), fence);
      last = runRound(this.#settings, raise, bounded);
      result = await unlessAborted(last, this.#signal);
      // Refused here means lost between the two rounds, not held from the start.
      // Stryker disable next-line StringLiteral: it is only compared with granted and refused
      if (result !== "granted") return { request, result: result && "unavailable", round, last };
    }
    const lock = this.#lockOf(request, round, limit, drawn?.fence);
    const attempt = { request, result, round, last };
    return lock.remaining() > 0 ? { ...attempt, lock } : attempt;
  }

  #lockOf(request: LockRequest, round: Round<CellAnswer>, limit: number, fence: number | undefined): Lock {
    const { ttl } = this.#settings;
    const strategy = this.#strategy;
    const granted = strategy?.grantedKeys ? { ...request, keys: strategy.grantedKeys(round) } : request;
    const { elapsed } = round;
    return new Lock(this.#settings, granted, {
      id: this.#id,
      ttl,
      elapsed,
      fence,
      limit,
      round,
      operations: strategy,
    });
  }

  /** @returns whether the platform keeps the rollback alive */
  #rollBack({ request, result, round }: Attempt): boolean {
    const cell = acquiredCell(request);
    // Where others have a quorum, this round kept nobody out: a message would make the waiters wake each other on and on.
    const settings = result === "refused" ? { ...this.#settings, wakeUp: undefined } : this.#settings;
    const releaseOne = releaseFunctionOf(settings, this.#resources, this.#strategy);
    const context = { ...this.#settings, isCallerWaiting: () => this.#waits && !this.#signal?.aborted };
    const { done } = rollback(context, round, (call) => releaseOne(call, cell, tombstoneRetention));
    this.#rollbacks.add(done);
    // Stryker disable next-line ArrowFunction: one that is over may be waited for again
    void done.then(() => this.#rollbacks.delete(done));
    return runInBackground(this.#settings, done);
  }

  #afterFailure({ result, round, last }: Attempt): AfterFailure {
    const { onEvent } = this.#settings;
    const remainingWait = this.#remainingWait;
    const held = result === "refused";
    this.#isAlwaysSplit &&= round.answers.some((answer) => answer?.outcome === "granted");
    const retryAfter = held ? timeUntilFree(round.answers) : undefined;
    const failed: FailedRound = { held, retryAfter, remainingWait, waited: this.#elapsed() };
    const next = this.#strategy?.afterFailedRound?.(round, failed);
    // A clock may be too coarse to show the last part of a ms pass.
    const longest = Math.min(Math.max(remainingWait, 1), retryAfter ?? Infinity);
    const retries = next?.type === "retry";
    const wanted = next?.type === "pause" ? next.ms : undefined;
    const seen = { holder: holderSeen(round.answers), waited: failed.waited };
    const poll = retries ? 0 : Math.min(wanted ?? this.#nextPause(round.elapsed(), seen), longest);
    const mayGoOn = retries || (next?.type !== "fail" && remainingWait > 0);
    const triesAgain = mayGoOn && !isHopeless(last.votes());
    if (held)
      emit(onEvent, { type: "contended", ...this.#progress(), retryIn: triesAgain ? poll : undefined });
    if (triesAgain) return { pause: { poll, longest } };
    const makeError = () => {
      if (next?.type === "fail") return next.error;
      // A clock may have ended the waiting after a round that was cut short: by now more may be known.
      if (held || isRefused(round)) {
        // Two names of one database look like a holder: the round's own request to one is in the way of the other.
        const how = this.#strategy ? this.#strategy.held : this.#isAlwaysSplit ? splitHint : undefined;
        return new LockHeldError(this.#resources, this.#elapsed(), retryAfter, how);
      }
      return new QuorumError("acquire", this.#resources, last.votes(), result === "granted");
    };
    return { makeError };
  }
}

const splitHint = " is held by someone else, or two endpoints are one database (npx redlock-edge doctor)";

function isRefused({ answers }: Round<CellAnswer>): boolean {
  const refusals = answers.filter((answer) => answer?.outcome === "held");
  return refusals.length > answers.length - quorumOf(answers.length);
}
