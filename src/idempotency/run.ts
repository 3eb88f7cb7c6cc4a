import { unlessAborted } from "../abort.ts";
import type { Ask } from "../endpoints/ask.ts";
import { LockHeldError, QuorumError, type RedlockError, type Vote } from "../errors.ts";
import { emit } from "../events.ts";
import { holderOf } from "../lock/contention.ts";
import { timeUntil } from "../lock/options.ts";
import { type FailedAttempt, type Next, type Progress, retry } from "../quorum/retry.ts";
import { type Call, runRound } from "../quorum/round.ts";
import type { Answer, RoundResult } from "../quorum/tally.ts";
import { noTurn, pendingVotes, turnOf } from "../quorum/turns.ts";
import { undoQuietly, unlessRefused } from "../quorum/undo.ts";
import { type Cell, type CellAnswer, end, keep } from "../redis/cell.ts";
import { randomToken, stopwatch } from "../runtime.ts";
import { type Attempt, type CountState, countAttempt } from "./attempts.ts";
import { type BeginState, stateOfBegin } from "./begin.ts";
import { keyClaim, lockedClaim, type RunClaim } from "./claim.ts";
import { completeOne, settleTimeout } from "./complete.ts";
import {
  DeadKeyError,
  FingerprintMismatchError,
  InProgressError,
  RecordCorruptError,
  ResultUnavailableError,
} from "./errors.ts";
import type { IdempotencyEvent, Report } from "./events.ts";
import { Execution, type Handler, type Outcome } from "./execution.ts";
import { isComplete, pendingText } from "./record.ts";
import { leaseWithin, type RunRequest, remainingRetention, retryAfter } from "./run-request.ts";

/** Another run is complete. `value`: its decoded result, where it has one. */
type ReplayState<Value> = Extract<BeginState, { kind: "replay" }> & { readonly value?: Value };

/** What one pass of a call has found. */
type CallState<Value> =
  | Exclude<BeginState, { kind: "replay" | "corrupt" }>
  | CountState
  /** Complete, but too old to be returned. `isRemoved`: this call has removed it from a quorum. */
  | { readonly kind: "stale"; readonly isRemoved: boolean }
  /** `options`: the codec's error as the cause, where the codec failed. */
  | { readonly kind: "corrupt"; readonly options?: { readonly cause: unknown } }
  | ReplayState<Value>;

/** One pass of a call: a round of begins, and where that is granted, what is done before the handler. */
interface Pass<Value> {
  readonly state: CallState<Value>;
  readonly claim: RunClaim;
  /** The result of the round of begins; undefined: the caller's signal aborted it. */
  readonly result: RoundResult | undefined;
  /** The last of its rounds, which decided. */
  readonly last: { votes(): Vote[] };
  readonly attempt?: Attempt | undefined;
  /** Where the handler may run. */
  readonly execution?: Execution<Value>;
}

/** One call of `run()`: what its rounds of begins have in common. */
export class RunCall<Value> {
  readonly #request: RunRequest<Value>;
  readonly #elapsed: () => number;
  #hasEnded = false;
  #lastPass: Pass<Value> | undefined;
  readonly #report: Report = (type, details) => {
    const { key, onEvent } = this.#request;
    this.#hasEnded = true;
    emit(onEvent, { type, key, ...details, elapsed: this.#elapsed() });
  };

  constructor(request: RunRequest<Value>) {
    this.#request = request;
    this.#elapsed = stopwatch(request.settings.runtime);
  }

  /** Executes the handler or returns another run's result, and reports the call's end. */
  async run(handler: Handler<Value>): Promise<Outcome<Value>> {
    const { settings, signal, deadline } = this.#request;
    try {
      const limit = timeUntil(deadline, settings.runtime);
      const call = { signal, limit, elapsed: this.#elapsed };
      return await retry<Outcome<Value>>(settings, call, (progress) => this.#attempt(handler, progress));
    } catch (error) {
      if (!this.#hasEnded) this.#report("aborted", { error });
      throw error;
    }
  }

  /** Begins, and executes the handler where that is granted. */
  async #attempt(
    handler: Handler<Value>,
    progress: Progress,
  ): Promise<{ readonly value: Outcome<Value> } | FailedAttempt<Outcome<Value>>> {
    const { settings, signal } = this.#request;
    const begun = await settings.turns.claim(turnOf(settings, progress, { signal }), async () => {
      if (signal?.aborted) throw signal.reason;
      const claim = this.#begin(progress);
      return { claim, result: await unlessAborted(claim.round.result, signal) };
    });
    if (!begun) return this.#withoutTurn();
    const { claim, result } = begun;
    const pass = await this.#pass(claim, result);
    this.#lastPass = pass;
    if (pass.execution) return { value: await pass.execution.run(handler, pass.attempt) };
    progress.keep(this.#rollBack(pass));
    const { kind } = pass.state;
    return {
      next: nextAfter(pass),
      votes: pass.last.votes(),
      within: kind === "split-vote" || kind === "stale" ? settleTimeout(settings) : settings.wait,
      retryAfter: pass.state.kind === "locked" ? pass.state.retryAfter : undefined,
      took: claim.round.elapsed(),
      end: () => this.#end(pass),
    };
  }

  /** The end of a call whose next begin was not sent. What the last one has shown says more. */
  #withoutTurn(): FailedAttempt<Outcome<Value>> {
    const { key, settings } = this.#request;
    const end = () => {
      if (this.#lastPass) return this.#end(this.#lastPass);
      const votes = pendingVotes(settings);
      throw this.#failed("unavailable", new QuorumError("begin", [key], votes, { why: noTurn }));
    };
    return { next: "end", end };
  }

  /** Sends a begin to every endpoint. */
  #begin(progress: Progress): RunClaim {
    const { settings, name, fingerprint, lock: resources, note } = this.#request;
    const { runtime, timeout } = settings;
    const token = randomToken(runtime);
    const startedAt = Math.floor(runtime.now());
    const own: Cell = { keys: [name], value: pendingText({ token, startedAt, fingerprint }) };
    const operations = resources
      ? lockedClaim(settings, own, { resources, nonce: token, note })
      : keyClaim(own);
    const limit = progress.untilDeadline();
    // The last round waits for every endpoint, so that it can distinguish a run under way from an outage.
    const isLast = progress.remaining() <= timeout;
    const lease = leaseWithin(settings, limit);
    const options = { isHasty: !isLast, timeout: lease };
    const round = runRound(settings, (call) => operations.begin(call, lease), options);
    return { token, operations, startedAt, lease, limit, round };
  }

  /**
   * Finds out whether the handler may run. Before it runs, a quorum has its fence, and its attempt is counted: after the
   * claim, so that contenders do not count, and before the handler, so that each of its crashes does.
   */
  async #pass(claim: RunClaim, result: RoundResult | undefined): Promise<Pass<Value>> {
    const { signal, maxAttempts } = this.#request;
    const { operations, round, lease } = claim;
    const state = await this.#stateAfterBegin(claim, result);
    const begun: Pass<Value> = { state, claim, result, last: round };
    if (state.kind !== "run") return begun;
    const raise = operations.fence?.confirm(round, operations.cell, lease);
    const raised = raise ? await unlessAborted(raise.result, signal) : "granted";
    const drawn = { ...begun, last: raise ?? round };
    // Refused here means lost between the two rounds.
    if (raised !== "granted") return { ...drawn, state: { kind: raised ? "unclear" : "aborted" } };
    const execution = new Execution(this.#request, claim, this.#report);
    const within = execution.validity.remaining();
    if (within <= 0) return drawn;
    if (maxAttempts === Infinity) return { ...drawn, execution };
    const attempt = await countAttempt(this.#request, claim, within);
    const counted = { ...drawn, last: attempt, attempt, state: attempt.state };
    const mayRun = counted.state.kind === "run" && execution.validity.remaining() > 0;
    return mayRun ? { ...counted, execution } : counted;
  }

  async #stateAfterBegin(claim: RunClaim, result: RoundResult | undefined): Promise<CallState<Value>> {
    const { fingerprint, signal } = this.#request;
    // It may wait for the endpoints that have not answered.
    const state = result && (await unlessAborted(stateOfBegin(claim.round, result, fingerprint), signal));
    if (!state) return { kind: "aborted" };
    return state.kind === "replay" ? this.#replay(claim, state) : state;
  }

  /** Decodes another run's result, and makes sure that a quorum has it. */
  async #replay(claim: RunClaim, state: ReplayState<Value>): Promise<CallState<Value>> {
    const { codec, isStale } = this.#request;
    const { record, text, decided } = state;
    if (isStale?.(record)) return this.#remove(claim, text);
    let found = state;
    try {
      // Decoded before it is written to further endpoints: an unreadable result must not spread.
      if (record.result !== undefined) found = { ...state, value: codec.decode(record.result) };
    } catch (cause) {
      return { kind: "corrupt", options: { cause } };
    }
    // No caller gets it before a quorum has it: until then another run could store a different one.
    return decided || (await this.#bringToQuorum(claim, state)) ? found : { kind: "split-vote" };
  }

  /** Removes a complete record by comparison: what another call has begun or stored since stays. */
  async #remove({ operations }: RunClaim, text: string): Promise<CallState<Value>> {
    const { settings, signal } = this.#request;
    const stale = { ...operations.own, value: text };
    const round = runRound(settings, (call) => end(call, stale));
    await unlessAborted(round.mostlyDone(), signal);
    return { kind: "stale", isRemoved: (await unlessAborted(round.result, signal)) === "granted" };
  }

  async #bringToQuorum({ operations }: RunClaim, { record, text }: ReplayState<Value>): Promise<boolean> {
    const { settings, signal } = this.#request;
    const retention = remainingRetention(this.#request, record);
    const completeRecord = (call: Ask) => completeOne(call, operations, { text, retention });
    const round = runRound(settings, completeRecord);
    return (await unlessAborted(round.result, signal)) === "granted";
  }

  /**
   * Rolls back this pass, so that other runs can begin. Where a complete record was found, it is written instead: to
   * the endpoints that granted the claim, and over complete records that only a minority has.
   */
  #rollBack({ state, claim, attempt }: Pass<Value>): Promise<void> {
    const { settings } = this.#request;
    const decided = state.kind === "replay" ? state : undefined;
    const undoOne = decided
      ? (call: Call, begin: Call<CellAnswer>) => this.#replaceOne(call, begin, { claim, decided })
      : unlessRefused((call) => claim.operations.free(call));
    const free = () => undoQuietly(settings, claim.round.calls, undoOne).done;
    // The count first: a run that finds the key free must not count this one, whose handler has not begun.
    return attempt ? attempt.undo().then(free) : free();
  }

  /** Replaces this run's claim, or another complete record, by the one that a quorum has. */
  #replaceOne(
    call: Ask,
    { answer }: Call<CellAnswer>,
    { claim: { operations }, decided: { record, text } }: Replacement<Value>,
  ): Promise<Answer> {
    const { own } = operations;
    const found = (answer?.outcome === "held" && answer.other) || own.value;
    const stays = found === text || (found !== own.value && !isComplete(found));
    if (stays) return Promise.resolve({ outcome: "lost" });
    const retention = remainingRetention(this.#request, record);
    if (found === own.value) return operations.complete(call, text, retention);
    return keep(call, { ...own, value: found }, retention, text);
  }

  /** Ends the call: returns another run's result, or throws. */
  #end({ state, claim, result, last }: Pass<Value>): Outcome<Value> {
    const { key, settings, lock } = this.#request;
    switch (state.kind) {
      case "replay": {
        const { unstored: reason } = state.record;
        if (reason) throw this.#failed("omitted", new ResultUnavailableError(key, reason), { reason });
        this.#report("replayed");
        return { status: "replayed", value: state.value as Value };
      }
      case "mismatch":
        throw this.#failed("mismatch", new FingerprintMismatchError(key));
      case "dead":
        throw this.#failed("dead", new DeadKeyError(key, state.attempts));
      case "corrupt":
        throw this.#failed("corrupt", new RecordCorruptError(key, state.options));
      case "busy":
        throw this.#failed("busy", new InProgressError(key, retryAfter(this.#request, state.record)));
      case "locked": {
        const known = { retryAfter: state.retryAfter, holder: holderOf(claim.round.calls) };
        throw this.#failed("locked", new LockHeldError(lock ?? [], this.#elapsed(), known));
      }
      case "split-vote":
        // Where endpoints failed, they may be the reason rather than other runs.
        if (result !== "unavailable") throw this.#failed("busy", new InProgressError(key, settings.timeout));
    }
    const late = state.kind === "run";
    throw this.#failed(
      "unavailable",
      new QuorumError("begin", [key], last.votes(), { late, ttl: settings.ttl }),
    );
  }

  /** Reports how the call ends, and returns its error. */
  #failed(
    type: IdempotencyEvent["type"],
    error: RedlockError,
    details?: Pick<IdempotencyEvent, "reason">,
  ): RedlockError {
    this.#report(type, details);
    return error;
  }
}

/** A record that a quorum has, and the claim of this run that it replaces. */
interface Replacement<Value> {
  readonly claim: RunClaim;
  readonly decided: ReplayState<Value>;
}

/** What follows a pass without a run. */
function nextAfter(pass: Pass<unknown>): Next {
  const { state } = pass;
  if (!isTemporary(state.kind)) return "end";
  return state.kind === "stale" && state.isRemoved ? "at-once" : "pause";
}

/** Whether waiting may change the state. */
function isTemporary(kind: CallState<unknown>["kind"]): boolean {
  return ["busy", "locked", "split-vote", "stale", "unclear", "run"].includes(kind);
}
