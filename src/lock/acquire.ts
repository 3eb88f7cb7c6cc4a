import { LockHeldError, QuorumError, type RedlockError } from "../errors/errors.ts";
import { type FailedAttempt, type Next, type Progress, retry } from "../quorum/retry.ts";
import { type Call, type Round, runRound } from "../quorum/round.ts";
import { isVeto, type RoundResult } from "../quorum/tally.ts";
import { undoQuietly } from "../quorum/undo.ts";
import type { CellAnswer } from "../redis/cell.ts";
import { unlessAborted } from "../runtime/abort.ts";
import { randomToken, stopwatch } from "../runtime/runtime.ts";
import { holderOf, timeUntilFree } from "./contention.ts";
import { type CallEvent, emit } from "./events.ts";
import { type Grant, Lock, ttlWithin } from "./lock.ts";
import { type AcquireOptions, type Settings, timeUntil } from "./options.ts";
import type { Decision, Protocol } from "./protocol.ts";
import type { WakeUpListener } from "./wake-up.ts";

/** @throws LockHeldError | QuorumError the error of the last round, or of the protocol */
export function acquire(
  settings: Settings,
  resources: readonly string[],
  options: AcquireOptions,
  protocol: Protocol,
): Promise<Lock> {
  return new Acquisition(settings, resources, options, protocol).run();
}

export async function orHeld<Value>(acquiring: Promise<Value>): Promise<Value | LockHeldError> {
  try {
    return await acquiring;
  } catch (error) {
    if (error instanceof LockHeldError) return error;
    throw error;
  }
}

interface Claimed extends Grant {
  readonly round: Round<CellAnswer>;
  /** Undefined: the caller's signal has aborted it. */
  readonly result: RoundResult | undefined;
  last: Decision;
  next: Next;
  lock?: Lock;
  error?: unknown;
}

class Acquisition {
  readonly #settings: Settings;
  readonly #resources: readonly string[];
  readonly #options: AcquireOptions;
  readonly #protocol: Protocol;
  readonly #elapsed: () => number;
  #rounds = 0;
  #isAlwaysSplit = true;
  #listener: WakeUpListener | undefined;
  /** Replaced by the finding of each round, which says more. */
  #endWithoutTurn = (): never => {
    const votes = this.#settings.endpoints.map(({ name }) => ({
      endpoint: name,
      outcome: "pending" as const,
    }));
    throw new QuorumError(this.#action, this.#resources, votes, { why: noTurn });
  };

  constructor(settings: Settings, resources: readonly string[], options: AcquireOptions, protocol: Protocol) {
    this.#settings = settings;
    this.#resources = resources;
    this.#options = options;
    this.#protocol = protocol;
    this.#elapsed = stopwatch(settings.runtime);
  }

  async run(): Promise<Lock> {
    const { onEvent, runtime } = this.#settings;
    const { signal, note, deadline = Infinity } = this.#options;
    try {
      const bounds = { signal, limit: timeUntil(deadline, runtime), elapsed: this.#elapsed };
      const lock = await retry(this.#settings, bounds, (progress) => this.#attempt(progress));
      emit(onEvent, { type: "acquired", ...this.#facts(), note, fence: lock.fence });
      lock.activate();
      return lock;
    } catch (error) {
      emit(onEvent, { type: "notAcquired", ...this.#facts(), error });
      throw error;
    } finally {
      this.#listener?.close();
    }
  }

  get #action(): string {
    return this.#protocol.action ?? "acquire";
  }

  #facts(): CallEvent {
    return { resources: this.#resources, rounds: this.#rounds, elapsed: this.#elapsed() };
  }

  async #attempt(progress: Progress): Promise<{ readonly value: Lock } | FailedAttempt<Lock>> {
    const { signal } = this.#options;
    const { turns, runtime, timeout } = this.#settings;
    const ms = Math.min(Math.max(progress.remaining(), timeout), progress.untilDeadline());
    const claimed = await turns.claim({ runtime, timeout, ms, signal }, () => this.#claim(progress));
    if (!claimed) return { next: "end", end: this.#endWithoutTurn };
    const concluding = this.#conclude(claimed);
    await unlessAborted(concluding, signal);
    if (claimed.lock && !signal?.aborted) {
      this.#settings.ownHolds.add(claimed.cell.keys, claimed.lock);
      return { value: claimed.lock };
    }
    progress.keep(concluding.then(() => this.#undo(claimed)));
    if (signal?.aborted) throw signal.reason;
    const failed = this.#failed(claimed);
    this.#endWithoutTurn = failed.end;
    return failed;
  }

  async #claim(progress: Progress): Promise<Claimed> {
    const { signal } = this.#options;
    if (signal?.aborted) throw signal.reason;
    this.#rounds += 1;
    const settings = this.#settings;
    const { timeout, runtime } = settings;
    // Fresh in each round: HTTP keeps no order, so a late undo must not name the next round's claim.
    const cell = this.#protocol.cell(randomToken(runtime));
    const limit = progress.untilDeadline();
    const ttl = ttlWithin(settings.ttl, limit);
    // The last round waits out its timeout, so that it can tell contention from an outage.
    const isHasty = progress.remaining() > timeout;
    const claim = (call: Call) => {
      const answer = this.#protocol.claim(call, cell, ttl);
      this.#listener?.asking(call);
      return answer;
    };
    const round = runRound(settings, claim, { isHasty });
    const result = await unlessAborted(round.result, signal);
    return { protocol: this.#protocol, cell, round, ttl, limit, result, last: round, next: "pause" };
  }

  async #conclude(claimed: Claimed): Promise<void> {
    const { protocol, cell, round, ttl, result } = claimed;
    try {
      if (result === "granted") {
        claimed.last = (await protocol.confirm?.(round, cell, ttl)) ?? round;
        if ((await claimed.last.result) === "granted") {
          const lock = new Lock(this.#settings, this.#resources, claimed);
          if (lock.remaining() > 0) claimed.lock = lock;
        }
      }
      // Before the undo, so that the release knows the protocol's finding.
      if (result && !claimed.lock) claimed.next = (await protocol.next?.(round)) ?? "pause";
    } catch (error) {
      claimed.next = "end";
      claimed.error = error;
    }
  }

  /** The confirmation has left nothing but counters. */
  #undo({ protocol, cell, round, result }: Claimed): Promise<void> {
    // The undo of a refused round frees no quorum. If it published a message, waiters would wake each other forever.
    const isAnnounced = result !== "refused";
    return undoQuietly(this.#settings, round.calls, (call, claim) =>
      protocol.release(call, cell, claim, isAnnounced),
    ).done;
  }

  #failed(claimed: Claimed): FailedAttempt<never> {
    const { round, result, last, next } = claimed;
    const { onEvent } = this.#settings;
    this.#isAlwaysSplit &&= round.calls.some(({ answer }) => answer?.outcome === "granted");
    return {
      next,
      votes: last.votes(),
      retryAfter: result === "refused" ? timeUntilFree(round.calls) : undefined,
      took: round.elapsed(),
      report: (retryIn) => {
        if (result !== "refused" || !onEvent) return;
        emit(onEvent, { type: "contended", ...this.#facts(), retryIn, holder: holderOf(round.calls) });
      },
      rest: (poll, longest) => this.#rest(round, poll, next === "pause" ? longest : poll),
      end: () => {
        throw claimed.error ?? this.#errorOf(claimed);
      },
    };
  }

  /** Undefined: no holder publishes its release, so the loop pauses. */
  #rest(round: Round<CellAnswer>, poll: number, longest: number): Promise<void> | undefined {
    const { signal } = this.#options;
    const outcomes = round.calls.map(({ answer }) => answer?.outcome);
    if (!outcomes.includes("held") || poll === 0) return undefined;
    const { waiter } = this.#protocol;
    if (waiter) this.#listener ??= this.#settings.wakeUp?.listen(this.#settings, waiter, this.#resources);
    // If contenders got a part each, perhaps nobody holds it, so nobody would publish its release.
    const most = outcomes.includes("granted") ? poll : longest;
    return this.#listener?.wait({ round, poll, longest: most, signal });
  }

  /** Called after the undo, when more answers are known. */
  #errorOf({ cell, round, result, last }: Claimed): RedlockError {
    const { calls } = round;
    const refused = last.votes().filter(({ outcome }) => outcome === "held").length;
    if (!isVeto(refused, calls.length)) {
      const details = { late: last === round && result === "granted", ttl: this.#settings.ttl };
      return new QuorumError(this.#action, this.#resources, last.votes(), details);
    }
    const retryAfter = timeUntilFree(calls);
    const holder = holderOf(calls);
    const someone = this.#isAlwaysSplit ? splitHint : holder ? undefined : unknownHint;
    const own = this.#settings.ownHolds.has(cell.keys) ? ownHint : undefined;
    const how = this.#protocol.heldText ?? own ?? someone;
    return new LockHeldError(this.#resources, this.#elapsed(), { retryAfter, holder, how });
  }
}

const noTurn = "not sent in time: others were sent first, as many as the endpoints answer in time";
const ownHint = " is held by this client: by another call, or by the caller itself (then see ReentrantLock)";
const unknownHint = " is held by someone else; inspect(redlock, name) tells by whom";
const splitHint = " is held by someone else, or two endpoints are one database (npx redlock-edge doctor)";
