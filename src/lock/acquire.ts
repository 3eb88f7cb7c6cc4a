import { unlessAborted } from "../abort.ts";
import { LockHeldError, QuorumError, type RedlockError } from "../errors.ts";
import { type CallEvent, emit } from "../events.ts";
import { type FailedAttempt, type Progress, retry } from "../quorum/retry.ts";
import { type Round, runRound } from "../quorum/round.ts";
import { isVeto, type RoundResult } from "../quorum/tally.ts";
import { noTurn, pendingVotes, turnOf } from "../quorum/turns.ts";
import { undoQuietly } from "../quorum/undo.ts";
import type { Cell, CellAnswer } from "../redis/cell.ts";
import { randomToken, stopwatch } from "../runtime.ts";
import { holderOf, timeUntilFree } from "./contention.ts";
import { Lock } from "./lock.ts";
import { type AcquireOptions, type Settings, timeUntil } from "./options.ts";
import type { FailedRound, Protocol } from "./protocol.ts";
import type { WakeUpListener } from "./wake-up/wake-up.ts";

/**
 * Runs rounds until one acquires the lock or the waiting is over.
 *
 * @throws LockHeldError | QuorumError | RedlockError what the last round, or the protocol, ended with
 * @throws the signal's reason when it aborts
 */
export function acquire(
  settings: Settings,
  resources: readonly string[],
  options: AcquireOptions,
  protocol: Protocol,
): Promise<Lock> {
  return new Acquisition(settings, resources, options, protocol).run();
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

/** A round that claims, and the second one that had to confirm it. */
interface RoundAttempt {
  readonly cell: Cell;
  readonly lock?: Lock | undefined;
  /** `granted`, but no lock: the answers came too late. Undefined: the caller's signal aborted it. */
  readonly result: RoundResult | undefined;
  readonly round: Round<CellAnswer>;
  /** The last of its rounds, which decided: `round`, or the one that confirmed it. */
  readonly last: Round;
}

/** One call of `acquire`: what its rounds have in common. */
class Acquisition {
  readonly #settings: Settings;
  readonly #resources: readonly string[];
  readonly #options: AcquireOptions;
  readonly #protocol: Protocol;
  readonly #elapsed: () => number;
  #rounds = 0;
  /** Whether each round so far was granted by some endpoint. */
  #isAlwaysSplit = true;
  #listener: WakeUpListener | undefined;
  #lastFailed: FailedAttempt<Lock> | undefined;

  constructor(settings: Settings, resources: readonly string[], options: AcquireOptions, protocol: Protocol) {
    this.#settings = settings;
    this.#resources = resources;
    this.#options = options;
    this.#protocol = protocol;
    this.#elapsed = stopwatch(settings.runtime);
  }

  /** Runs the call, and reports its end. */
  async run(): Promise<Lock> {
    const settings = this.#settings;
    const { onEvent, runtime } = settings;
    const { signal, deadline = Infinity } = this.#options;
    const elapsed = this.#elapsed;
    try {
      const limit = timeUntil(deadline, runtime);
      const lock = await retry(settings, { signal, limit, elapsed }, (progress) => this.#attempt(progress));
      const { note } = this.#options;
      lock.activate(() => ({ type: "acquired", ...this.#facts(), note, fence: lock.fence }));
      return lock;
    } catch (error) {
      emit(onEvent, { type: "notAcquired", ...this.#facts(), error });
      throw error;
    } finally {
      this.#listener?.close();
    }
  }

  #facts(): CallEvent {
    return { resources: this.#resources, rounds: this.#rounds, elapsed: this.#elapsed() };
  }

  /** Waits for its turn, and sends a round. */
  async #attempt(progress: Progress): Promise<{ readonly value: Lock } | FailedAttempt<Lock>> {
    const attempt = await this.#settings.turns.claim(turnOf(this.#settings, progress, this.#options), () =>
      this.#sendRound(progress),
    );
    if (!attempt) return this.#withoutTurn();
    if (attempt.lock) return { value: attempt.lock };
    this.#lastFailed = this.#failed(attempt, progress);
    return this.#lastFailed;
  }

  /** The end of a call whose next round was not sent. What the last one has shown says more. */
  #withoutTurn(): FailedAttempt<Lock> {
    const end = () => {
      const votes = pendingVotes(this.#settings);
      throw new QuorumError("acquire", this.#resources, votes, { why: noTurn });
    };
    return { next: "end", end: this.#lastFailed?.end ?? end };
  }

  /** Claims on every endpoint; if that is granted and a quorum has to agree on something more, in a second round. */
  async #sendRound(progress: Progress): Promise<RoundAttempt> {
    const { signal } = this.#options;
    if (signal?.aborted) throw signal.reason;
    this.#rounds += 1;
    const protocol = this.#protocol;
    const { timeout, ttl, runtime } = this.#settings;
    // Fresh in every round: HTTP keeps no order, so a late undo of one round must not name what the next one claims.
    const cell = protocol.cell(randomToken(runtime));
    // The last round is not hasty, so that it can tell contention from an outage.
    const isLast = progress.remaining() <= timeout;
    const limit = progress.untilDeadline();
    // The settings' timeout counts, unless the ttl is shorter: an answer that comes after it is useless.
    const options = { timeout: ttl, isHasty: !isLast };
    const round = runRound(this.#settings, (call) => protocol.claim(call, cell, ttl), options);
    const result = await unlessAborted(round.result, signal);
    if (result !== "granted") return { cell, result, round, last: round };
    const confirmation = protocol.confirm?.(round, cell, ttl);
    const last = confirmation ?? round;
    if (confirmation) {
      const confirmed = await unlessAborted(confirmation.result, signal);
      // Refused here means lost between the two rounds, not held from the start.
      if (confirmed !== "granted") return { cell, result: confirmed && "unavailable", round, last };
    }
    const held = protocol.granted?.(round, cell) ?? cell;
    const grant = { protocol, cell: held, round, ttl, limit };
    const lock = new Lock(this.#settings, this.#resources, grant);
    return { cell, result, round, last, lock: lock.remaining() > 0 ? lock : undefined };
  }

  #failed(attempt: RoundAttempt, progress: Progress): FailedAttempt<Lock> {
    const { result, round, last } = attempt;
    const { onEvent } = this.#settings;
    const isHeld = result === "refused";
    this.#isAlwaysSplit &&= round.calls.some(({ answer }) => answer?.outcome === "granted");
    const retryAfter = isHeld ? timeUntilFree(round.calls) : undefined;
    const waited = progress.elapsed();
    const failed: FailedRound = { isHeld, retryAfter, remainingWait: progress.remaining(), waited };
    const isAborted = result === undefined;
    const following = (!isAborted && this.#protocol.next?.(round, failed)) || "pause";
    // After that, so that the release knows what the protocol has found.
    this.#undo(attempt, progress);
    const error = following instanceof Error ? following : undefined;
    return {
      next: following instanceof Error ? "end" : following,
      votes: last.votes(),
      retryAfter,
      took: round.elapsed(),
      report: (retryIn) => {
        // Without a hook nobody needs to know the holder.
        if (isHeld && onEvent) {
          const holder = holderOf(round.calls);
          emit(onEvent, { type: "contended", ...this.#facts(), retryIn, holder });
        }
      },
      rest: (poll, longest) => this.#rest(round, poll, longest),
      end: () => {
        throw error ?? this.#errorOf(attempt, retryAfter);
      },
    };
  }

  /** Undoes a round wherever it may have claimed. What confirmed it has left nothing but counters. */
  #undo({ cell, result, round }: RoundAttempt, progress: Progress): void {
    // Refused means that others have a quorum, so this frees nothing that waiters could get. If it published a message,
    // waiters would wake each other again and again.
    const isAnnounced = result !== "refused";
    const undone = undoQuietly(this.#settings, round.calls, (call, claim) =>
      this.#protocol.release(call, cell, claim, isAnnounced),
    );
    progress.keep(undone.done);
  }

  /** Waits for the message of a release, where others hold the lock and publish one. Else undefined: the loop pauses. */
  #rest(round: Round<CellAnswer>, poll: number, longest: number): Promise<void> | undefined {
    const { signal } = this.#options;
    const outcomes = round.calls.map(({ answer }) => answer?.outcome);
    if (!outcomes.includes("held") || poll === 0) return undefined;
    const { waiter } = this.#protocol;
    if (waiter) this.#listener ??= this.#settings.wakeUp?.listen(this.#settings, waiter, this.#resources);
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
    const holder = holderOf(round.calls);
    const unknown = holder ? undefined : unknownHint;
    const how = this.#protocol.heldText ?? (this.#isAlwaysSplit ? splitHint : unknown);
    return new LockHeldError(this.#resources, this.#elapsed(), { retryAfter, holder, how });
  }
}

const unknownHint = " is held by someone else; inspect(redlock, name) tells by whom";
const splitHint = " is held by someone else, or two endpoints are one database (npx redlock-edge doctor)";

function isRefused(round: Round<CellAnswer>): boolean {
  return isVeto(round.answers().filter(({ outcome }) => outcome === "held").length, round.calls.length);
}
