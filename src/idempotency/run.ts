import { unlessAborted } from "../abort.ts";
import type { EndpointCall, RequestCost } from "../endpoints/endpoint-call.ts";
import { LockHeldError, QuorumError, type Vote } from "../errors.ts";
import { emit, newId } from "../events.ts";
import { holderOf, holderSeen } from "../lock/contention.ts";
import { timeUntil } from "../lock/options.ts";
import { mostlyDone } from "../quorum/mostly-done.ts";
import { type FailedAttempt, type Next, type Progress, retry } from "../quorum/retry.ts";
import { rollback } from "../quorum/rollback.ts";
import { isHopeless, type Round, runRound } from "../quorum/round.ts";
import type { Answer, RoundResult } from "../quorum/tally.ts";
import { type Cell, end, keep } from "../redis/cell.ts";
import { randomToken, stopwatch } from "../runtime.ts";
import { type Attempt, type CountState, countAttempt, stateAfterCount } from "./attempts.ts";
import { type BeginState, stateOfBegin } from "./begin.ts";
import { type Claim, keyClaim, lockedClaim } from "./claim.ts";
import { completeOne, settleTimeout } from "./complete.ts";
import {
  DeadKeyError,
  FingerprintMismatchError,
  InProgressError,
  RecordCorruptError,
  ResultUnavailableError,
} from "./errors.ts";
import type { Report } from "./events.ts";
import { Execution, type Handler, type Outcome } from "./execution.ts";
import { type CompleteRecord, isComplete, pendingText, type UnstoredReason } from "./record.ts";
import { leaseWithin, type RunRequest, remainingRetention, retryAfter } from "./run-request.ts";

type ReplayState = Extract<BeginState, { kind: "replay" }>;

/** A complete record that a quorum has. */
interface DecidedRecord {
  readonly record: CompleteRecord;
  readonly text: string;
}

/** What one pass of a call has found. */
type CallState<Value> =
  | Exclude<BeginState, { kind: "replay" | "corrupt" }>
  | CountState
  /** Complete, but too old to be returned. `isRemoved`: this call has removed it from a quorum. */
  | { readonly kind: "stale"; readonly isRemoved: boolean }
  /** `options`: the codec's error as the cause, where the codec failed. */
  | { readonly kind: "corrupt"; readonly options?: { readonly cause: unknown } }
  | ({ readonly kind: "replay"; readonly value: Value } & DecidedRecord)
  /** Complete, but without a result. */
  | ({ readonly kind: "omitted"; readonly reason: UnstoredReason } & DecidedRecord);

/** One pass of a call: a round of begins, and where that is granted, the count of the attempt. */
interface Pass<Value> {
  readonly state: CallState<Value>;
  readonly claim: Claim;
  /** The result of the round; undefined: the caller's signal aborted it. */
  readonly result: RoundResult | undefined;
  /** The round that was to raise the fence's counters. */
  readonly raise?: Round<Answer> | undefined;
  readonly attempt?: Attempt | undefined;
}

/** One call of `run()`: what its rounds of begins have in common. */
export class RunCall<Value> {
  readonly #request: RunRequest<Value>;
  readonly #elapsed: () => number;
  readonly #cost: RequestCost = { requests: 0, commands: 0 };
  readonly #id = newId();
  #hasEnded = false;
  readonly #report: Report = (type, details) => {
    const { key, onEvent } = this.#request;
    this.#hasEnded = type !== "called";
    emit(onEvent, { type, id: this.#id, key, ...details, elapsed: this.#elapsed(), ...this.#cost });
  };

  constructor(request: RunRequest<Value>) {
    this.#request = request;
    this.#elapsed = stopwatch(request.settings.runtime);
  }

  /** Executes the handler or returns another run's result, and reports the call's beginning and its end. */
  async run(handler: Handler<Value>): Promise<Outcome<Value>> {
    const { settings, signal, deadline } = this.#request;
    this.#report("called");
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
    const { admission, runtime } = settings;
    if (!admission.enter()) await admission.wait({ runtime, ms: progress.remaining(), signal });
    let claim: Claim;
    let result: RoundResult | undefined;
    try {
      if (signal?.aborted) throw signal.reason;
      claim = this.#begin(progress);
      result = await unlessAborted(claim.round.result, signal);
    } finally {
      admission.leave();
    }
    let pass: Pass<Value> = { claim, result, state: await this.#stateAfterBegin(claim, result) };
    pass = await this.#drawFence(pass);
    if (pass.state.kind === "run") {
      const execution = new Execution(this.#request, claim, this.#report);
      pass = await this.#count(pass, execution.validity.remaining());
      const mayRun = pass.state.kind === "run" && execution.validity.remaining() > 0;
      if (mayRun) return { value: await execution.run(handler, pass.attempt) };
    }
    const { kind } = pass.state;
    return {
      rolledBack: this.#rollBack(pass),
      next: nextAfter(pass),
      within: kind === "split-vote" || kind === "stale" ? settleTimeout(settings) : settings.wait,
      retryAfter: pass.state.kind === "locked" ? pass.state.retryAfter : undefined,
      took: claim.round.elapsed(),
      holder: holderSeen(claim.round.answers),
      end: () => this.#end(pass),
    };
  }

  /** Sends a begin to every endpoint. */
  #begin(progress: Progress): Claim {
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
    const options = { cost: this.#cost, cutsShort: !isLast, yields: true, timeout: lease };
    const round = runRound(settings, (call) => operations.begin(call, lease), options);
    return { token, operations, startedAt, lease, limit, round };
  }

  async #stateAfterBegin(claim: Claim, result: RoundResult | undefined): Promise<CallState<Value>> {
    if (!result) return { kind: "aborted" };
    const state = await stateOfBegin(claim.round, result, this.#request.fingerprint);
    return state.kind === "replay" ? this.#replay(claim, state) : state;
  }

  /** Decodes another run's result, and makes sure that a quorum has it. */
  async #replay(claim: Claim, state: ReplayState): Promise<CallState<Value>> {
    if (this.#request.isStale?.(state.record)) return this.#remove(claim, state.text);
    // Decoded before it is written to further endpoints: an unreadable result must not spread.
    const decoded = this.#decode(state);
    if (decoded.kind === "corrupt") return decoded;
    // No caller gets it before a quorum has it: until then another run could store a different one.
    if (!state.decided && !(await this.#bringToQuorum(claim, state))) return { kind: "split-vote" };
    return decoded;
  }

  /** Removes a complete record by comparison: what another call has begun or stored since stays. */
  async #remove({ operations }: Claim, text: string): Promise<CallState<Value>> {
    const { settings, signal } = this.#request;
    const stale = { ...operations.own, value: text };
    const round = runRound(settings, (call) => end(call, stale), { cost: this.#cost });
    await unlessAborted(mostlyDone(settings, round), signal);
    return { kind: "stale", isRemoved: (await unlessAborted(round.result, signal)) === "granted" };
  }

  #decode({ record, text }: ReplayState): CallState<Value> {
    if (record.unstored) return { kind: "omitted", reason: record.unstored, record, text };
    try {
      return { kind: "replay", value: this.#request.codec.decode(record.result!), record, text };
    } catch (cause) {
      return { kind: "corrupt", options: { cause } };
    }
  }

  async #bringToQuorum({ operations }: Claim, { record, text }: ReplayState): Promise<boolean> {
    const { settings, signal } = this.#request;
    const retention = remainingRetention(this.#request, record);
    const completeRecord = (call: EndpointCall) => completeOne(call, operations, { text, retention });
    const round = runRound(settings, completeRecord, { cost: this.#cost });
    return (await unlessAborted(round.result, signal)) === "granted";
  }

  /** Takes the fence of a granted claim with locks, and brings it to a quorum. */
  async #drawFence(pass: Pass<Value>): Promise<Pass<Value>> {
    const { settings, signal } = this.#request;
    const { operations, round, lease } = pass.claim;
    const isDrawn = pass.state.kind === "run" && pass.result === "granted";
    const { fence, cell } = operations;
    const raise = isDrawn
      ? fence?.bringToQuorum(settings, round, { cell, ttl: lease, cost: this.#cost })
      : undefined;
    if (!raise) return pass;
    const result = await unlessAborted(raise.result, signal);
    if (!result) return { ...pass, raise, state: { kind: "aborted" } };
    // Refused here means lost between the two rounds.
    return result === "granted" ? { ...pass, raise } : { ...pass, raise, state: { kind: "unclear" } };
  }

  /**
   * Counts the attempt, where runs are counted: after the claim, so that contenders do not count, and before the
   * handler, so that each of its crashes does.
   */
  async #count(pass: Pass<Value>, within: number): Promise<Pass<Value>> {
    const { maxAttempts } = this.#request;
    if (maxAttempts === Infinity || within <= 0) return pass;
    const attempt = await countAttempt(this.#request, pass.claim, within);
    return { ...pass, attempt, state: stateAfterCount(attempt, maxAttempts) };
  }

  /**
   * Rolls back this pass, so that other runs can begin. Where a complete record was found, it is written instead: to
   * the endpoints that granted the claim, and over complete records that only a minority has.
   */
  #rollBack({ state, claim, attempt }: Pass<Value>): Promise<void> {
    const { settings } = this.#request;
    const decided = state.kind === "replay" || state.kind === "omitted" ? state : undefined;
    const rollbackOne = (call: EndpointCall): Promise<Answer> => {
      if (!decided) return claim.operations.free(call);
      return this.#replaceOne(call, claim, decided);
    };
    const everywhere = decided !== undefined;
    const free = () => rollback(settings, claim.round, rollbackOne, { everywhere }).done;
    // The count first: a run that finds the key free must not count this one, whose handler has not begun.
    return attempt ? attempt.undo().then(free) : free();
  }

  /** Replaces this run's claim, or another complete record, by the one that a quorum has. */
  #replaceOne(
    call: EndpointCall,
    { operations, round }: Claim,
    { record, text }: DecidedRecord,
  ): Promise<Answer> {
    const { own } = operations;
    const answer = round.answers[this.#request.settings.endpoints.indexOf(call.endpoint)];
    const found = (answer?.outcome === "held" && answer.other) || own.value;
    const stays = found === text || (found !== own.value && !isComplete(found));
    // Stryker disable next-line ObjectLiteral,StringLiteral: nobody reads the votes of this rollback
    if (stays) return Promise.resolve({ outcome: "lost" });
    const retention = remainingRetention(this.#request, record);
    if (found === own.value) return operations.complete(call, text, retention);
    return keep(call, { ...own, value: found }, retention, { next: text });
  }

  /** Ends the call: returns another run's result, or throws. */
  #end(pass: Pass<Value>): Outcome<Value> {
    const { state, claim, result } = pass;
    const { key, settings, lock } = this.#request;
    switch (state.kind) {
      case "replay":
        this.#report("replayed");
        return { status: "replayed", value: state.value };
      case "omitted":
        this.#report("omitted", { reason: state.reason });
        throw new ResultUnavailableError(key, state.reason);
      case "mismatch":
        this.#report("mismatch");
        throw new FingerprintMismatchError(key);
      case "dead":
        this.#report("dead");
        throw new DeadKeyError(key, state.attempts);
      case "corrupt":
        this.#report("corrupt");
        throw new RecordCorruptError(key, state.options);
      case "busy":
        this.#report("busy");
        throw new InProgressError(key, retryAfter(this.#request, state.record));
      case "locked":
        this.#report("locked");
        throw new LockHeldError(lock ?? [], this.#elapsed(), {
          retryAfter: state.retryAfter,
          holder: holderOf(claim.round.answers),
        });
      case "split-vote":
        // Where endpoints failed, they may be the reason rather than other runs.
        // Stryker disable next-line BooleanLiteral: it is only in the text of the error
        if (result === "unavailable") throw this.#unavailable(claim.round.votes(), false);
        this.#report("busy");
        throw new InProgressError(key, settings.timeout);
      default:
        // Stryker disable next-line ConditionalExpression,EqualityOperator,StringLiteral: it is only in the error's text
        throw this.#unavailable(votesOf(pass), state.kind === "run");
    }
  }

  /** `late`: a quorum granted the claim, but too late. */
  #unavailable(votes: Vote[], late: boolean): QuorumError {
    this.#report("unavailable");
    return new QuorumError("begin", [this.#request.key], votes, late);
  }
}

/** What follows a pass without a run. */
function nextAfter(pass: Pass<unknown>): Next {
  const { state } = pass;
  if (!isTemporary(state.kind) || isHopeless(votesOf(pass))) return "end";
  return state.kind === "stale" && state.isRemoved ? "at-once" : "pause";
}

/** Whether waiting may change the state. */
function isTemporary(kind: CallState<unknown>["kind"]): boolean {
  return ["busy", "locked", "split-vote", "stale", "unclear", "run"].includes(kind);
}

/** The votes of the last round of a pass. */
function votesOf({ claim, raise, attempt }: Pass<unknown>): Vote[] {
  return (attempt ?? raise ?? claim.round).votes();
}
