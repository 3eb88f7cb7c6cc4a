import type { Call, RequestCost } from "../endpoints/call.ts";
import { QuorumError } from "../errors.ts";
import { type EventHook, emit } from "../events.ts";
import { autoExtend } from "../lock/auto-extend.ts";
import { extendOnQuorum } from "../lock/extend.ts";
import { type Settings, timeUntil } from "../lock/options.ts";
import { Validity } from "../lock/validity.ts";
import { pauses } from "../quorum/backoff.ts";
import { rollback } from "../quorum/rollback.ts";
import { type Round, runRound, unlessAborted } from "../quorum/round.ts";
import type { Answer } from "../quorum/tally.ts";
import { extend, type Register, release } from "../redis/register.ts";
import { randomToken, sleep, stopwatch } from "../runtime.ts";
import { runInBackground } from "../wait-until.ts";
import { type Attempt, countAttempt } from "./attempts.ts";
import { complete, settleTimeout } from "./complete.ts";
import {
  DeadKeyError,
  FingerprintMismatchError,
  InProgressError,
  LeaseLostError,
  RecordCorruptError,
  ResultUnavailableError,
} from "./errors.ts";
import {
  type CompleteRecord,
  isComplete,
  type PendingRecord,
  pendingText,
  type UnstoredReason,
} from "./record.ts";
import { type Codec, encodeResult } from "./result.ts";
import { classifyBegin, completeOne, type RecordKeys, runBeginRound } from "./store.ts";

/** What the handler is told. */
export interface RunContext {
  readonly key: string;
  /** Names this run; no other has the same. */
  readonly token: string;
  /** Aborts with {@link LeaseLostError} when the run can no longer count on being the only one. */
  readonly signal: AbortSignal;
  /** ms of the lease left; it is renewed meanwhile. */
  remaining(): number;
}

/** What came of it: the handler's value, or that of the run that was first. */
export interface Outcome<Value> {
  readonly status: "executed" | "replayed";
  readonly value: Value;
  /**
   * Why the result is not stored; absent where it is. `unserializable`, `too-large`: the key is complete, nobody
   * runs it again, and duplicates get a {@link ResultUnavailableError}. `no-quorum`: too few endpoints have taken
   * it so far; storing goes on within the lease, and if that fails, the next delivery runs the handler again.
   */
  readonly unstored?: UnstoredReason | "no-quorum";
}

/** What came of a call: one event for each, unless it was aborted. */
export interface IdempotencyEvent {
  /**
   * `executed`: the handler ran and its result is stored. `unstored`: it ran, but its result is not stored;
   * `reason` says why. `failed`: the handler threw, the key is free. `lost`: it ran longer than its lease and
   * another run took over. `replayed`, `busy`, `mismatch`: another run was first. `omitted`: another run is
   * complete, but its result was not stored. `dead`: too many runs were first, and none of them ended. `corrupt`:
   * what is stored is no result. `unavailable`: no quorum answered in time, so the handler did not run.
   */
  readonly type:
    | "executed"
    | "unstored"
    | "failed"
    | "lost"
    | "replayed"
    | "busy"
    | "mismatch"
    | "omitted"
    | "dead"
    | "corrupt"
    | "unavailable";
  readonly key: string;
  /** Of `unstored` and `omitted`: see {@link Outcome.unstored}. */
  readonly reason?: UnstoredReason | "no-quorum";
  /** Of `unstored`: what the codec threw, or what is wrong with what it returned. */
  readonly error?: unknown;
  /** ms since the call. */
  readonly elapsed: number;
  /** HTTP requests sent for it so far. */
  readonly requests: number;
  /** Redis commands executed for it so far, as Upstash bills them; answers under way are not in yet. */
  readonly commands: number;
}

/** Everything that one run needs. */
export interface RunRequest<Value> extends RecordKeys {
  /** `ttl` is the lease. */
  readonly settings: Settings;
  readonly fingerprint: string;
  readonly retention: number;
  readonly codec: Codec<Value>;
  readonly signal: AbortSignal | undefined;
  readonly deadline: number;
  /** Infinity: runs are not counted. */
  readonly maxAttempts: number;
  /** The most bytes that a record with its result may take in a request. */
  readonly maxResult: number;
  readonly onEvent: EventHook<IdempotencyEvent> | undefined;
}

type Timing = Pick<RunRequest<unknown>, "settings" | "retention">;

type Report = (
  type: IdempotencyEvent["type"],
  more?: Pick<IdempotencyEvent, "reason"> & { readonly error?: unknown },
) => void;

/** A run's claim: its own pending record, and the round that wrote it. */
interface Claim {
  readonly token: string;
  /** The record's key, with this run's pending record. */
  readonly own: Register;
  readonly startedAt: number;
  /** Its ttl, in ms. */
  readonly lease: number;
  readonly round: Round<Answer>;
}

/** Begins, and then runs the handler or returns what another run came to. */
export async function runOnce<Value>(
  request: RunRequest<Value>,
  handler: (context: RunContext) => Promise<Value> | Value,
): Promise<Outcome<Value>> {
  const { settings, key, name, fingerprint, codec, signal, maxAttempts } = request;
  const { runtime } = settings;
  const elapsed = stopwatch(runtime);
  const limit = timeUntil(request.deadline, runtime);
  const next = pauses(settings.backoff, runtime);
  const cost: RequestCost = { requests: 0, commands: 0 };
  const report: Report = (type, more) =>
    emit(request.onEvent, { type, key, ...more, elapsed: elapsed(), ...cost });
  const rollbacks = new Set<Promise<void>>();

  for (;;) {
    if (signal?.aborted) throw signal.reason;
    const token = randomToken(runtime);
    const startedAt = Math.floor(runtime.now());
    const own: Register = { keys: [name], value: pendingText({ token, startedAt, fingerprint }) };
    const allowed = limit - elapsed();
    // The last round hears every endpoint out.
    const isLast = Math.min(settings.wait, limit) - elapsed() <= settings.timeout;
    const lease = leaseWithin(settings, allowed);
    const round = runBeginRound({ ...settings, ttl: lease }, own, cost, !isLast);
    const verdict = await unlessAborted(round, signal);
    /** Brings a result to a quorum. */
    const decide = async ({ text, record }: { text: string; record: CompleteRecord }): Promise<boolean> => {
      const left = retentionLeft(request, record);
      const spread = runRound(settings, (call) => completeOne(call, own, text, left), { cost });
      return (await unlessAborted(spread, signal)) === "granted";
    };
    let begin = verdict && (await classifyBegin(round, verdict, fingerprint));
    let result: Decoded<Value> | undefined;
    let attempt: Attempt | undefined;
    if (begin?.kind === "replay") {
      const { result: text } = begin.record;
      if (text !== undefined) result = decoded(codec, text);
      // Before it is passed on to endpoints that lack it: what nobody can read must not spread.
      if (result && "cause" in result) begin = { kind: "corrupt" };
      // Nobody is told of it before it is decided: else another run could store another one meanwhile.
      else if (!begin.decided && !(await decide(begin))) begin = { kind: "split" };
    }

    if (begin?.kind === "run") {
      const run = new Run(request, { token, own, startedAt, lease, round }, allowed, cost, report);
      // Behind the claim, so that contenders do not count; before the handler, so that every crash of it does.
      const within = run.validity.remaining();
      if (maxAttempts < Infinity && within > 0) attempt = await countAttempt(request, token, within, cost);
      if (attempt && attempt.result !== "granted") begin = attempt.result && { kind: "unclear" };
      else if (attempt && attempt.count > maxAttempts) begin = { kind: "dead", attempts: attempt.count - 1 };
      else if (run.validity.remaining() > 0) return run.execute(handler, attempt);
    }

    // What this round left of its own goes: it makes place for others, or for the result, which also takes the
    // place of results that only a minority ever had.
    const replay = begin?.kind === "replay" ? begin : undefined;
    const giveWay = (call: Call): Promise<Answer> => {
      if (!replay) return release(call, own);
      const answer = round.answers[settings.endpoints.indexOf(call.endpoint)];
      const found = (answer?.outcome === "held" && answer.other) || own.value;
      const stays = found === replay.text || (found !== own.value && !isComplete(found));
      if (stays) return Promise.resolve({ outcome: "lost" });
      return extend(call, { ...own, value: found }, retentionLeft(request, replay.record), replay.text);
    };
    const { done } = rollback(settings, round, giveWay, replay !== undefined);
    const rolledBack: Promise<void> = (attempt ? attempt.undo().then(() => done) : done).finally(() =>
      rollbacks.delete(rolledBack),
    );
    rollbacks.add(rolledBack);
    const inBackground = runInBackground(settings, rolledBack);
    if (!begin) throw signal?.reason;

    const left =
      Math.min(begin.kind === "split" ? settleTimeout(settings) : settings.wait, limit) - elapsed();
    const waits =
      begin.kind === "busy" || begin.kind === "split" || begin.kind === "unclear" || begin.kind === "run";
    if (waits && left > 0) {
      await sleep(runtime, Math.min(next(round.elapsed()), left), signal);
      continue;
    }
    // Nothing else keeps the rollbacks alive once the caller has its answer.
    if (!inBackground) await Promise.all(rollbacks);
    switch (begin.kind) {
      case "replay":
        if (begin.record.unstored) {
          report("omitted", { reason: begin.record.unstored });
          throw new ResultUnavailableError(key, begin.record.unstored);
        }
        report("replayed");
        return { status: "replayed", value: (result as { value: Value }).value };
      case "mismatch":
        report("mismatch");
        throw new FingerprintMismatchError(key);
      case "dead":
        report("dead");
        throw new DeadKeyError(key, begin.attempts);
      case "corrupt":
        report("corrupt");
        throw new RecordCorruptError(key, result as { cause: unknown } | undefined);
      case "busy":
        report("busy");
        throw new InProgressError(key, retryAfter(request, begin.record));
      case "split":
        // Where endpoints failed, they may be the reason rather than the others.
        if (verdict === "unavailable") break;
        report("busy");
        throw new InProgressError(key, settings.timeout);
    }
    report("unavailable");
    throw new QuorumError("begin", [key], (attempt ?? round).votes(), begin.kind === "run");
  }
}

type Decoded<Value> = { readonly value: Value } | { readonly cause: unknown };

function decoded<Value>(codec: Codec<Value>, text: string): Decoded<Value> {
  try {
    return { value: codec.decode(text) };
  } catch (cause) {
    return { cause };
  }
}

/** A run whose claim has been granted. */
class Run<Value> {
  readonly validity: Validity;
  readonly #request: RunRequest<Value>;
  readonly #claim: Claim;
  readonly #cost: RequestCost;
  readonly #report: Report;
  readonly #limit: number;

  constructor(request: RunRequest<Value>, claim: Claim, limit: number, cost: RequestCost, report: Report) {
    this.#request = request;
    this.#claim = claim;
    this.#cost = cost;
    this.#report = report;
    this.#limit = limit;
    const { settings, key } = request;
    this.validity = new Validity({
      runtime: settings.runtime,
      driftFactor: settings.driftFactor,
      elapsed: claim.round.elapsed,
      ttl: claim.lease,
      limit,
      lostError: (why) => new LeaseLostError(key, why),
      onLost: () => undefined,
    });
  }

  async execute(
    handler: (context: RunContext) => Promise<Value> | Value,
    attempt: Attempt | undefined,
  ): Promise<Outcome<Value>> {
    const { settings, key, codec } = this.#request;
    const { own, token, round } = this.#claim;
    const { validity } = this;
    const { maxHold, backoff } = settings;
    const renewal = (ttl: number) => {
      const lease = this.#leaseFor(ttl);
      const perform = (call: Call) => extend(call, own, lease);
      return extendOnQuorum(settings, validity, { ttl, names: [key], cost: this.#cost, perform });
    };
    const { runtime } = settings;
    void autoExtend(validity, { runtime, ttl: () => this.#claim.lease, maxHold, backoff, extend: renewal });
    let value: Value;
    try {
      value = await handler({
        key,
        token,
        get signal() {
          return validity.signal;
        },
        remaining: () => validity.remaining(),
      });
    } catch (error) {
      validity.release();
      const free = () => rollback(settings, round, (call) => release(call, own)).done;
      // The count first: whoever finds the key free is to count from the beginning.
      const rolledBack = attempt ? attempt.clear().then(free) : free();
      if (!runInBackground(settings, rolledBack)) await rolledBack;
      this.#report("failed");
      throw error;
    }
    // From here on the lease is nobody's concern but Redis's: complete compares.
    const lease = validity.remaining();
    validity.release();
    const result = encodeResult(codec, value);
    const { roundResult, unstored } = await complete(
      { ...this.#request, ...this.#claim, cost: this.#cost },
      result,
      lease,
    );
    if (roundResult === "refused") {
      this.#report("lost");
      throw new LeaseLostError(key, "another run took over before the result could be stored");
    }
    // The effect has happened, so the caller gets its result in any case. Where no quorum has it, the record stays
    // pending and keeps others away.
    const reason = roundResult === "granted" ? unstored : "no-quorum";
    if (!reason) {
      this.#report("executed");
      return { status: "executed", value };
    }
    this.#report("unstored", { reason, ...("error" in result && { error: result.error }) });
    return { status: "executed", value, unstored: reason };
  }

  /** The ttl for a renewal that is cut because of the deadline: time to complete comes on top, as at the begin. */
  #leaseFor(ttl: number): number {
    const { settings } = this.#request;
    const isCut = ttl < settings.ttl && this.#limit <= settings.maxHold;
    return isCut ? leaseWithin(settings, ttl) : ttl;
  }
}

/**
 * A claim's ttl where the platform stops the code in `left` ms: that, and one request's time to complete. Nobody
 * is left to renew or free it after that, so it would only keep others away.
 */
function leaseWithin({ ttl, timeout }: Settings, left: number): number {
  return Math.max(1, Math.ceil(Math.min(ttl, left + timeout)));
}

/** The other run has ended by then, or its lease has; at least a second, for one that is being renewed. */
function retryAfter({ settings }: Timing, { startedAt }: PendingRecord): number {
  const age = settings.runtime.now() - startedAt;
  return Math.min(settings.ttl, Math.max(1_000, settings.ttl - age));
}

/** What is left of a result's retention, as far as the wall clocks agree; at least a second. */
function retentionLeft({ settings, retention }: Timing, { completedAt }: CompleteRecord): number {
  const age = Math.max(0, settings.runtime.now() - completedAt);
  return Math.max(1_000, Math.floor(retention - age));
}
