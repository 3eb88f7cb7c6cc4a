import { pauses } from "../backoff.ts";
import { checkType, checkWellFormed } from "../check.ts";
import { QuorumError } from "../errors.ts";
import { type EventHook, emit } from "../events.ts";
import { handOver, type Settings } from "../options.ts";
import { type Answer, ask, type Round, unlessAborted, type Verdict } from "../quorum.ts";
import { type Call, drop, type Register, renew, type Spent } from "../register.ts";
import { renewOnQuorum } from "../renew.ts";
import { randomToken, sleep, stopwatch } from "../runtime.ts";
import { Validity } from "../validity.ts";
import { withdraw } from "../withdraw.ts";
import {
  DeadKeyError,
  FingerprintMismatchError,
  InProgressError,
  LeaseLostError,
  RecordCorruptError,
} from "./errors.ts";
import { type CompleteRecord, completeText, isComplete, type PendingRecord, pendingText } from "./record.ts";
import { type Attempt, askBegin, completeOne, countAttempt, judgeBegin, type Place } from "./store.ts";

/** How results become text, of whole characters, and text results again. */
export interface Codec<Value> {
  encode(value: Value): string;
  decode(text: string): Value;
}

/** The default codec. `undefined` has no JSON; it is stored as an empty text. */
export const json: Codec<never> = {
  encode(value: unknown) {
    if (value === undefined) return "";
    const text = JSON.stringify(value) as string | undefined;
    if (text === undefined) throw new TypeError(`the result has no JSON: it is a ${typeof value}`);
    return text;
  },
  decode: (text: string) => (text === "" ? undefined : JSON.parse(text)) as never,
};

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
}

/** What came of a call: one event for each, unless it was aborted. */
export interface IdempotencyEvent {
  /**
   * `executed`: the handler ran and its result is stored. `unstored`: it ran, but no quorum could store that;
   * storing goes on within the lease. `failed`: the handler threw, the key is free. `lost`: it ran longer than
   * its lease and another run took over. `replayed`, `busy`, `mismatch`: another run was first. `dead`: too many
   * runs were first, and none of them ended. `corrupt`: what is stored is no result. `unavailable`: no quorum
   * answered in time, so the handler did not run.
   */
  readonly type:
    | "executed"
    | "unstored"
    | "failed"
    | "lost"
    | "replayed"
    | "busy"
    | "mismatch"
    | "dead"
    | "corrupt"
    | "unavailable";
  readonly key: string;
  /** ms since the call. */
  readonly elapsed: number;
  /** HTTP requests sent for it so far. */
  readonly requests: number;
  /** Redis commands executed for it so far, as Upstash bills them; answers under way are not in yet. */
  readonly commands: number;
}

/** Everything that one run needs. */
export interface RunRequest<Value> extends Place {
  /** `ttl` is the lease. */
  readonly settings: Settings;
  readonly fingerprint: string;
  readonly retention: number;
  readonly codec: Codec<Value>;
  readonly signal: AbortSignal | undefined;
  readonly deadline: number;
  /** Infinity: runs are not counted. */
  readonly maxAttempts: number;
  readonly onEvent: EventHook<IdempotencyEvent> | undefined;
}

type Timing = Pick<RunRequest<unknown>, "settings" | "retention">;

/** A run's claim: its own pending record, and the round that wrote it. */
interface Claim {
  readonly token: string;
  /** The record's key, with this run's pending record. */
  readonly own: Register;
  readonly startedAt: number;
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
  const limit = request.deadline - runtime.now();
  const next = pauses(settings.backoff, runtime);
  const spent: Spent = { requests: 0, commands: 0 };
  const report = (type: IdempotencyEvent["type"]) =>
    emit(request.onEvent, { type, key, elapsed: elapsed(), ...spent });
  const withdrawals = new Set<Promise<void>>();

  for (;;) {
    if (signal?.aborted) throw signal.reason;
    const token = randomToken(runtime);
    const startedAt = Math.floor(runtime.now());
    const own: Register = { keys: [name], value: pendingText({ token, startedAt, fingerprint }) };
    const allowed = limit - elapsed();
    // The last round hears every endpoint out.
    const isLast = Math.min(settings.wait, limit) - elapsed() <= settings.timeout;
    const round = askBegin(settings, own, spent, !isLast);
    const verdict = await unlessAborted(round, signal);
    /** Brings a result to a quorum. */
    const decide = async ({ text, record }: { text: string; record: CompleteRecord }): Promise<boolean> => {
      const left = retentionLeft(request, record);
      const spread = ask(settings, settings.timeout, (call) => completeOne(call, own, text, left), spent);
      return (await unlessAborted(spread, signal)) === "granted";
    };
    let begin = verdict && (await judgeBegin(round, verdict, fingerprint));
    let result: Decoded<Value> | undefined;
    let attempt: Attempt | undefined;
    if (begin?.kind === "replay") {
      result = decoded(codec, begin.record.result);
      // Before it is passed on to endpoints that lack it: what nobody can read must not spread.
      if ("cause" in result) begin = { kind: "corrupt" };
      // Nobody is told of it before it is decided: else another run could store another one meanwhile.
      else if (!begin.decided && !(await decide(begin))) begin = { kind: "split" };
    }

    if (begin?.kind === "run") {
      const run = new Run(request, { token, own, startedAt, round }, allowed, spent, report);
      // Behind the claim, so that contenders do not count; before the handler, so that every crash of it does.
      const within = run.validity.remaining();
      if (maxAttempts < Infinity && within > 0) attempt = await countAttempt(request, token, within, spent);
      if (attempt && attempt.verdict !== "granted") begin = attempt.verdict && { kind: "unclear" };
      else if (attempt && attempt.count > maxAttempts) begin = { kind: "dead", attempts: attempt.count - 1 };
      else if (run.validity.remaining() > 0) return run.execute(handler, attempt);
    }

    // What this round left of its own goes: it makes place for others, or for the result, which also takes the
    // place of results that only a minority ever had.
    const replay = begin?.kind === "replay" ? begin : undefined;
    const giveWay = (call: Call): Promise<Answer> => {
      if (!replay) return drop(call, own);
      const answer = round.answers[settings.endpoints.indexOf(call.endpoint)];
      const found = (answer?.outcome === "held" && answer.other) || own.value;
      const stays = found === replay.text || (found !== own.value && !isComplete(found));
      if (stays) return Promise.resolve({ outcome: "lost" });
      return renew(call, { ...own, value: found }, retentionLeft(request, replay.record), replay.text);
    };
    const { done } = withdraw(settings, round, giveWay, replay !== undefined);
    const withdrawal: Promise<void> = (attempt ? attempt.undo().then(() => done) : done).finally(() =>
      withdrawals.delete(withdrawal),
    );
    withdrawals.add(withdrawal);
    const handedOver = handOver(settings, withdrawal);
    if (!begin) throw signal?.reason;

    const left = Math.min(begin.kind === "split" ? patience(settings) : settings.wait, limit) - elapsed();
    const waits =
      begin.kind === "busy" || begin.kind === "split" || begin.kind === "unclear" || begin.kind === "run";
    if (waits && left > 0) {
      await sleep(runtime, Math.min(next(round.elapsed()), left), signal);
      continue;
    }
    // Nothing else keeps the withdrawals alive once the caller has its answer.
    if (!handedOver) await Promise.all(withdrawals);
    switch (begin.kind) {
      case "replay":
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
        if (verdict === "no quorum") break;
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
  readonly #spent: Spent;
  readonly #report: (type: IdempotencyEvent["type"]) => void;

  constructor(
    request: RunRequest<Value>,
    claim: Claim,
    limit: number,
    spent: Spent,
    report: (type: IdempotencyEvent["type"]) => void,
  ) {
    this.#request = request;
    this.#claim = claim;
    this.#spent = spent;
    this.#report = report;
    const { settings, key } = request;
    this.validity = new Validity({
      runtime: settings.runtime,
      driftFactor: settings.driftFactor,
      elapsed: claim.round.elapsed,
      ttl: settings.ttl,
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
    const { ttl, maxHold, backoff } = settings;
    const renewal = (lease: number) =>
      renewOnQuorum(settings, validity, lease, [key], this.#spent, (call) => renew(call, own, lease));
    void validity.autoExtend({ ttl: () => ttl, maxHold, backoff }, renewal);
    let value: Value;
    let result: string;
    try {
      value = await handler({
        key,
        token,
        get signal() {
          return validity.signal;
        },
        remaining: () => validity.remaining(),
      });
      // Anything else would be stored as a text that the codec never made.
      result = checkWellFormed("codec.encode()", checkType("codec.encode()", codec.encode(value), "string"));
    } catch (error) {
      validity.release();
      const free = () => withdraw(settings, round, (call) => drop(call, own)).done;
      // The count first: whoever finds the key free is to count from the beginning.
      const withdrawal = attempt ? attempt.clear().then(free) : free();
      if (!handOver(settings, withdrawal)) await withdrawal;
      this.#report("failed");
      throw error;
    }
    // From here on the lease is nobody's concern but Redis's: complete compares.
    const lease = validity.remaining();
    validity.release();
    await this.#complete(result, lease);
    return { status: "executed", value };
  }

  /** Stores the result; goes on trying when no quorum answers, for `lease` ms: what is left since its renewal. */
  async #complete(result: string, lease: number): Promise<void> {
    const { settings, key, fingerprint, retention } = this.#request;
    const { own, token, startedAt } = this.#claim;
    const { runtime, timeout } = settings;
    const elapsed = stopwatch(runtime);
    const completedAt = Math.max(Math.floor(runtime.now()), startedAt);
    const text = completeText({ token, completedAt, fingerprint, result });
    const attempt = async (): Promise<Verdict> => {
      const round = ask(settings, timeout, (call) => completeOne(call, own, text, retention), this.#spent);
      const verdict = await round.verdict;
      // What a minority took of a refused result stays: somebody may have brought it to a quorum meanwhile.
      if (!handOver(settings, round.done)) await round.done;
      return verdict;
    };
    switch (await attempt()) {
      case "granted":
        return this.#report("executed");
      case "refused":
        this.#report("lost");
        throw new LeaseLostError(key, "another run took over before the result could be stored");
    }
    // The effect has happened, so the caller gets its result; the record stays pending and keeps others away.
    this.#report("unstored");
    const retry = async (): Promise<void> => {
      const next = pauses(settings.backoff, runtime);
      while (elapsed() < lease) {
        await sleep(runtime, next());
        if ((await attempt()) !== "no quorum") return;
      }
    };
    const retries = retry();
    if (!handOver(settings, retries)) await Promise.race([retries, sleep(runtime, patience(settings))]);
  }
}

/** How long contenders may go on parting a key among themselves, or a result wait for its quorum, in ms. */
function patience({ timeout, wait }: Settings): number {
  return Math.max(wait, 2 * timeout);
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
