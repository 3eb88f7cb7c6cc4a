import { checkInteger } from "../check/check.ts";
import { refuseMethods, refuseProperties } from "../check/foreign-names.ts";
import type { Endpoint } from "../endpoints/endpoint.ts";
import { EndpointError, LockLostError, QuorumError } from "../errors/errors.ts";
import { type Call, leastPatience, type Round, runRound } from "../quorum/round.ts";
import type { Answer } from "../quorum/tally.ts";
import { undo } from "../quorum/undo.ts";
import type { Cell } from "../redis/cell.ts";
import { keepAlive, maxTimerDelay, sleep, stopwatch } from "../runtime/runtime.ts";
import { warnOnceAMinute } from "../runtime/warn.ts";
import { autoExtend } from "./auto-extend.ts";
import { emit, type HoldEnd } from "./events.ts";
import { parseHolder } from "./note.ts";
import type { Settings } from "./options.ts";
import type { Protocol } from "./protocol.ts";
import { Validity } from "./validity.ts";

/** A {@link Lock} that was acquired with `fencing: true`. */
export interface FencedLock extends Lock {
  readonly fence: number;
}

export interface Grant {
  readonly protocol: Protocol;
  readonly cell: Cell;
  readonly round: Round;
  readonly ttl: number;
  readonly limit: number;
}

/**
 * The handle of a successful acquire. You may rely on it for `remaining()` ms.
 *
 * @example
 * await using lock = await redlock.acquire("invoice:42", { fencing: true });
 * await db.run("UPDATE invoices SET paid = 1, fence = ?1 WHERE id = 42 AND fence < ?1", lock.fence);
 */
export class Lock {
  /** The resources held, in the order given. */
  readonly resources: readonly string[];
  /** Larger than the fence of every earlier lock of these resources. Only with `fencing`. */
  readonly fence: number | undefined;
  readonly #settings: Settings;
  readonly #protocol: Protocol;
  readonly #cell: Cell;
  readonly #validity: Validity;
  /** For the release: for each endpoint, the claim that its value may come from. */
  readonly #claims: Call[];
  /** By endpoint and ttl, how many extensions may still be executed. */
  readonly #unanswered = new Map<Endpoint, Map<number, number>>();
  readonly #held: () => number;
  #limit: number;
  #hasEnded = false;
  #ttl: number;
  /** It never rejects. */
  #extension: Promise<unknown> | undefined;
  #releasing: Promise<boolean | undefined> | undefined;
  #isDone = false;

  /** @internal Locks come from {@link Redlock.acquire}. */
  constructor(settings: Settings, resources: readonly string[], grant: Grant) {
    const { protocol, cell, round, ttl, limit } = grant;
    this.resources = resources;
    this.fence = protocol.fence;
    this.#settings = settings;
    this.#protocol = protocol;
    this.#cell = cell;
    this.#ttl = settings.ttl;
    this.#claims = [...round.calls];
    this.#held = round.elapsed;
    this.#limit = limit;
    this.#validity = new Validity({
      runtime: settings.runtime,
      driftFactor: settings.driftFactor,
      ttl,
      elapsed: round.elapsed,
      lostError: (why) => protocol.lostError?.(why) ?? new LockLostError(resources, why),
      onLost: (reason) => this.#reportEnd({ type: "lost", reason }),
    });
    if (limit < settings.ttl) this.#validity.endsBy = "deadline";
  }

  /** Identifies the holder in Redis. A secret: do not log it. */
  get token(): string {
    return parseHolder(this.#cell.value).nonce;
  }

  /** The ttl that was last requested, in ms. */
  get ttl(): number {
    return this.#ttl;
  }

  /**
   * ms of validity that remain, ≤ 0 once it has ended. On Cloudflare Workers clocks stand still between I/O, so use
   * {@link Lock.verify} after long computation.
   */
  remaining(): number {
    return this.#validity.remaining();
  }

  /**
   * Aborts with {@link LockLostError} when the validity ends, even if no endpoint answers, or when a quorum says that
   * the lock is gone. A release does not abort it.
   */
  get signal(): AbortSignal {
    return this.#validity.signal;
  }

  /**
   * Extends the lock on a quorum, and restores it on endpoints that have lost it. It never creates a lock that is gone.
   *
   * @param ttl to request from now on, in ms, an integer of at least 10. Default: the lock's ttl
   * @returns the new validity in ms
   * @throws LockLostError when it is gone, or released meanwhile
   * @throws QuorumError when too few endpoints answered. You can try again while validity remains
   */
  async extend(ttl: number = this.#ttl): Promise<number> {
    checkInteger("ttl (ms)", ttl, 10, maxTimerDelay);
    // One at a time, because HTTP keeps no order and the shorter of two must not be executed last.
    const extension = this.#extension ? this.#extension.then(() => this.#extend(ttl)) : this.#extend(ttl);
    this.#extension = extension.catch(() => undefined);
    return extension;
  }

  /**
   * Releases the lock on every endpoint. Waits for a quorum, and without `waitUntil` for the others half as long again
   * (at least 50 ms in all). It never rejects, because an error in a `finally` would replace the result of your work.
   * The event `released` has it.
   *
   * @returns true: released on a quorum. False: it was already gone. Undefined: too few endpoints answered, so the ttl
   * frees it unless you try again
   */
  async release(): Promise<boolean | undefined> {
    if (this.#isDone) return false;
    this.#releasing ??= this.#releaseEverywhere();
    try {
      return await this.#releasing;
    } finally {
      this.#releasing = undefined;
    }
  }

  /**
   * Asks a quorum whether the lock is still held. Its validity does not change.
   *
   * @throws QuorumError when too few endpoints answered
   */
  async verify(): Promise<boolean> {
    if (this.#validity.released || this.#validity.loss) return false;
    const round = runRound(this.#settings, (call) => this.#protocol.extend(call, this.#cell, 0));
    const result = await round.result;
    if (result === "unavailable") throw new QuorumError("verify", this.resources, round.votes());
    if (result === "refused") this.#validity.lose("no quorum has its token any more");
    return result === "granted" && !this.#validity.loss;
  }

  /** Releases the lock at the end of an `await using` block. It never rejects. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }

  /** @internal */
  activate(): void {
    const settings = this.#settings;
    if (settings.onEvent) this.#validity.watch();
    if (settings.autoExtend) this.extendUntilEnd((ttl) => this.extend(ttl));
  }

  /** @internal */
  extendUntilEnd(extend: (ttl: number) => Promise<unknown>): void {
    const { runtime, maxHold } = this.#settings;
    const ttl = () => this.#ttl;
    void autoExtend(this.#validity, { runtime, ttl, held: this.#held, maxHold, limit: this.#limit, extend });
  }

  /** @internal */
  async outliveDeadline(): Promise<void> {
    if (this.#limit === Infinity) return;
    this.#limit = Infinity;
    await this.extend();
  }

  /** @internal Leaves the lock to its ttl. Resolves when its requests are over. Never rejects. */
  async abandon(
    end: HoldEnd = { type: "detached" },
  ): Promise<{ readonly settings: Settings; readonly cell: Cell }> {
    this.#isDone = true;
    this.#validity.end();
    this.#reportEnd(end);
    await Promise.all([this.#extension, ...this.#claims.map(({ settled }) => settled)]);
    return { settings: this.#settings, cell: this.#cell };
  }

  #untilDeadline(ttl: number): number {
    return ttlWithin(ttl, this.#limit - this.#held());
  }

  async #extend(given: number): Promise<number> {
    const { resources } = this;
    const settings = this.#settings;
    const validity = this.#validity;
    const ttl = this.#untilDeadline(given);
    this.#ttl = given;
    const claims = [...this.#claims];
    const settled = claims.map(({ answer }) => answer !== undefined);
    const round = await this.#extendOnQuorum(ttl);
    if (ttl < given) validity.endsBy = "deadline";
    if (this.#protocol.isRestorable) {
      round.calls.forEach((call, index) => {
        // The claim may have arrived since.
        if (settled[index]) this.#restore(call, index, claims[index]!);
      });
    }
    if (!this.#hasEnded) {
      emit(settings.onEvent, { type: "extended", resources, ttl, elapsed: round.elapsed() });
    }
    // It may have been released meanwhile.
    if (validity.released) throw validity.lose("it was released");
    return this.remaining();
  }

  async #extendOnQuorum(ttl: number): Promise<Round> {
    const settings = this.#settings;
    const validity = this.#validity;
    if (validity.released) throw validity.lose("it was released");
    if (validity.loss) throw validity.loss;
    // A shorter ttl counts at once, because an endpoint may execute it even if its answer is lost.
    if (validity.budgetOf(ttl) < validity.remaining()) validity.extend(ttl, stopwatch(settings.runtime));
    // A hanging request must not hide the end of the validity.
    const timeout = validity.remaining();
    const round = runRound(settings, (call) => this.#extendOne(call, ttl), { timeout });
    const result = await round.result;
    if (validity.loss) throw validity.loss;
    if (result === "refused") throw validity.lose("no quorum has its token any more");
    // Not too late: the validity was at most this ttl's when the requests were sent, and has not ended.
    if (result !== "granted") throw new QuorumError("extend", this.resources, round.votes(), { ttl });
    validity.extend(ttl, round.elapsed);
    return round;
  }

  async #extendOne(call: Call, ttl: number): Promise<Answer> {
    const { endpoint } = call;
    const unanswered = this.#unanswered.get(endpoint) ?? new Map<number, number>();
    this.#unanswered.set(endpoint, unanswered);
    // A shorter extension, executed later, would undo this one, so this endpoint must not vote for it.
    if (Math.min(...unanswered.keys()) < ttl) {
      throw new EndpointError(endpoint.name, "timeout", "an earlier, shorter extension is unanswered");
    }
    unanswered.set(ttl, (unanswered.get(ttl) ?? 0) + 1);
    // If it fails, it stays, because nobody learns whether it is executed.
    const answer = await this.#protocol.extend(call, this.#cell, ttl);
    const left = unanswered.get(ttl)! - 1;
    if (left > 0) unanswered.set(ttl, left);
    else unanswered.delete(ttl);
    return answer;
  }

  /** Safe, because a quorum has just shown that nobody else can have it. */
  #restore({ endpoint, ended }: Call, index: number, lost: Call): void {
    const settings = this.#settings;
    const alone = { ...settings, endpoints: [endpoint], onFailure: undefined };
    const restored = ended.then(async ({ outcome }) => {
      for (let left = outcome === "lost" ? restoreTries : 0; left > 0; left -= 1) {
        const isGone = this.#validity.released || this.#validity.loss;
        if (isGone || lost !== this.#claims[index]) return;
        const ttl = this.#untilDeadline(this.#ttl);
        const round = runRound(alone, (call) => this.#protocol.claim(call, this.#cell, ttl));
        const claim = round.calls[0]!;
        // The failed claim may yet be executed.
        if (lost.isOver) this.#claims[index] = claim;
        if ((await claim.ended).outcome !== "held") return;
        // In case the lost claim is executed twice.
        this.#claims[index] = lost;
        await sleep(settings.runtime, leastPatience + round.elapsed());
      }
    });
    keepAlive(settings, restored);
  }

  async #releaseEverywhere(): Promise<boolean | undefined> {
    const settings = this.#settings;
    this.#validity.end();
    const { turns, runtime, timeout, wait } = settings;
    // After the ttl nothing is left to release.
    const turn = { runtime, timeout, ms: Math.min(wait, this.#ttl) };
    const { round, isInBackground, result } = await turns.release(turn, async () => {
      const releaseOne = (call: Call, claim: Call) => this.#protocol.release(call, this.#cell, claim, true);
      const round = undo(settings, this.#claims, releaseOne);
      const isInBackground = keepAlive(settings, round.done);
      return { round, isInBackground, result: await round.result };
    });
    // Without waitUntil, only this call keeps the other requests alive.
    if (!isInBackground) await round.mostlyDone();
    this.#isDone = result !== "unavailable";
    const freed = this.#isDone ? result === "granted" : undefined;
    const error = this.#isDone ? undefined : new QuorumError("release", this.resources, round.votes());
    // Without a hook nobody would notice. A run has events of its own.
    const isRun = this.#protocol.action !== undefined;
    if (!isRun && !settings.onEvent && (error?.cause as EndpointError | undefined)?.permanent) {
      warnOnceAMinute(settings.runtime, "released", error!.message);
    }
    this.#reportEnd({ type: "released", elapsed: round.elapsed(), freed, error });
    return freed;
  }

  #reportEnd(end: HoldEnd): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    const { onEvent } = this.#settings;
    if (onEvent) emit(onEvent, { ...end, resources: this.resources, held: this.#held() });
  }
}

refuseMethods("lock", Lock.prototype, { unlock: "lock.release()" });
refuseProperties("lock", Lock.prototype, {
  expiration: "lock.remaining()",
  value: "lock.token",
  // `redlock` passes the signal alone.
  aborted: "lock.signal.aborted, as in async ({ signal }) => …",
});

/** A contender may have its part there for a moment. */
const restoreTries = 3;

/** Redis itself frees the lock at the deadline. */
export function ttlWithin(ttl: number, untilDeadline: number): number {
  return untilDeadline < ttl ? Math.max(1, Math.floor(untilDeadline)) : ttl;
}
