import { checkInteger } from "../check/check.ts";
import { refuseMethods, refuseProperties } from "../check/foreign-names.ts";
import type { Endpoint } from "../endpoints/endpoint.ts";
import { EndpointError, LockLostError, QuorumError } from "../errors/errors.ts";
import { type Call, leastPatience, type Round, runRound } from "../quorum/round.ts";
import type { Answer } from "../quorum/tally.ts";
import { undo } from "../quorum/undo.ts";
import type { Cell } from "../redis/cell.ts";
import { keepAlive, maxTimerDelay, sleep, stopwatch } from "../runtime/runtime.ts";
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

/** The first state of a {@link Lock}. */
export interface Grant {
  readonly protocol: Protocol;
  readonly cell: Cell;
  /** The round that acquired it, or took it over from another process. */
  readonly round: Round;
  readonly ttl: number;
  /** ms from the beginning of the round to the deadline. Infinity: there is none. */
  readonly limit: number;
}

/**
 * The handle of a successful acquire. It is valid for `remaining()` ms: you may rely on it, and it ends by itself unless it is
 * extended.
 *
 * @example
 * await using lock = await redlock.acquire("invoice:42", { fencing: true });
 * await db.run("UPDATE invoices SET paid = 1, fence = ?1 WHERE id = 42 AND fence < ?1", lock.fence);
 */
export class Lock {
  /** The resources held, in the order given. */
  readonly resources: readonly string[];
  /** Fencing token: larger than the fence of every earlier lock of these resources. Only with `fencing`. */
  readonly fence: number | undefined;
  readonly #settings: Settings;
  readonly #protocol: Protocol;
  readonly #cell: Cell;
  readonly #validity: Validity;
  /** For each endpoint, the claim that its value may come from. A release undoes it. */
  readonly #claims: Call[];
  /**
   * By endpoint and ttl: how many extensions may still be executed, because they are under way or have failed. A late answer
   * takes its extension out.
   */
  readonly #unanswered = new Map<Endpoint, Map<number, number>>();
  /** ms since before the request that acquired it, or took it over. */
  readonly #held: () => number;
  /** ms from the beginning of the hold to the deadline. */
  #limit: number;
  /** Whether an event has reported the end of the hold. */
  #hasEnded = false;
  #ttl: number;
  /** The last extension under way, and those before it. It never rejects. */
  #extension: Promise<unknown> | undefined;
  #releasing: Promise<boolean | undefined> | undefined;
  /** Whether a quorum has released it, or this handle was abandoned: `release` has nothing to do any more. */
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

  /** The random value that identifies the holder in Redis. A secret, which no log shows. */
  get token(): string {
    return parseHolder(this.#cell.value).nonce;
  }

  /** The ttl that was last requested, in ms. If the deadline of the call is nearer, Redis keeps the lock until then. */
  get ttl(): number {
    return this.#ttl;
  }

  /**
   * ms of validity that remain. ≤ 0 once it has ended. Counted from before the request that granted or extended it, by
   * the faster of two clocks, less the drift. On Cloudflare Workers both clocks stand still between I/O: after
   * long computation use {@link Lock.verify} instead.
   */
  remaining(): number {
    return this.#validity.remaining();
  }

  /**
   * Aborts with {@link LockLostError} when the lock is lost: when its validity ends, by a local timer that needs
   * no answer from an endpoint, or as soon as a quorum of endpoints says so. A release does not abort it.
   */
  get signal(): AbortSignal {
    return this.#validity.signal;
  }

  /**
   * Extends the lock on a quorum. It never creates a lock that is gone. If a quorum still has it, it is restored
   * on endpoints that have lost it (a restart) and have nothing else in its place. If no quorum answers, the old
   * validity stands, or the shorter one that was requested: some endpoint may have begun to count.
   *
   * @param ttl what to request from now on, in ms, an integer of at least 10. Default: the lock's ttl
   * @returns the new validity in ms
   * @throws LockLostError when it is gone, or released meanwhile. Sends no request if its validity has ended
   * @throws QuorumError when too few endpoints answered. You can try again while validity remains
   */
  async extend(ttl: number = this.#ttl): Promise<number> {
    checkInteger("ttl (ms)", ttl, 10, maxTimerDelay);
    // One at a time: HTTP keeps no order, and the shorter of two extensions must not be executed last.
    const extension = this.#extension ? this.#extension.then(() => this.#extend(ttl)) : this.#extend(ttl);
    this.#extension = extension.catch(() => undefined);
    return extension;
  }

  /**
   * Releases the lock on every endpoint. Waits for a quorum, and without `waitUntil` for the others half as long again
   * (at least 50 ms in all). Their requests go on.
   *
   * It never rejects: in a `finally`, an error would replace the result of work that is done. Undefined: too few endpoints have
   * answered, so the ttl frees the lock. The event `released` says why, and you may try again.
   *
   * @returns true: released on a quorum. False: it was already gone, or released before. Undefined: it is not known
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
   * Asks a quorum whether the lock is still held. If the lock is held, nothing changes, including its validity.
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

  /**
   * Releases the lock at the end of an `await using` block. A failed release is left to the ttl, and the `released` event has
   * its error: the block has done its work, so it must not look as if it had failed.
   */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }

  /** @internal Watches for the end of the hold, to report it, and begins auto-extension. */
  activate(): void {
    const settings = this.#settings;
    if (settings.onEvent) this.#validity.watch();
    if (settings.autoExtend) this.extendUntilEnd((ttl) => this.extend(ttl));
  }

  /** @internal Extends it by this function until it ends. */
  extendUntilEnd(extend: (ttl: number) => Promise<unknown>): void {
    const { runtime, maxHold } = this.#settings;
    const ttl = () => this.#ttl;
    void autoExtend(this.#validity, { runtime, ttl, held: this.#held, maxHold, limit: this.#limit, extend });
  }

  /** @internal Holds it for its whole ttl again, whatever the deadline of its call was. */
  async outliveDeadline(): Promise<void> {
    if (this.#limit === Infinity) return;
    this.#limit = Infinity;
    await this.extend();
  }

  /**
   * @internal Ends this handle, and leaves the lock to its ttl. Resolves when its requests are answered or have timed out, with
   * what another handle needs to go on. Never rejects.
   */
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
        // If a claim was under way when the extension was sent, it may stand there since.
        if (settled[index]) this.#restore(call, index, claims[index]!);
      });
    }
    if (!this.#hasEnded) {
      emit(settings.onEvent, { type: "extended", resources, ttl, elapsed: round.elapsed() });
    }
    // It may have been released while the extension was under way.
    if (validity.released) throw validity.lose("it was released");
    return this.remaining();
  }

  /** Extends it on a quorum, within the validity that remains. The new validity counts from before the requests were sent. */
  async #extendOnQuorum(ttl: number): Promise<Round> {
    const settings = this.#settings;
    const validity = this.#validity;
    if (validity.released) throw validity.lose("it was released");
    if (validity.loss) throw validity.loss;
    // A shorter ttl counts at once: any endpoint may execute it, even if its answer does not arrive.
    if (validity.budgetOf(ttl) < validity.remaining()) validity.extend(ttl, stopwatch(settings.runtime));
    // No request may outlast the validity: a hanging request must not hide its end.
    const timeout = validity.remaining();
    const round = runRound(settings, (call) => this.#extendOne(call, ttl), { timeout });
    const result = await round.result;
    if (validity.loss) throw validity.loss;
    if (result === "refused") throw validity.lose("no quorum has its token any more");
    // This cannot be too late: the validity was at most this ttl's when the requests were sent, and has not ended.
    if (result !== "granted") throw new QuorumError("extend", this.resources, round.votes(), { ttl });
    validity.extend(ttl, round.elapsed);
    return round;
  }

  async #extendOne(call: Call, ttl: number): Promise<Answer> {
    const { endpoint } = call;
    const unanswered = this.#unanswered.get(endpoint) ?? new Map<number, number>();
    this.#unanswered.set(endpoint, unanswered);
    // A shorter extension that is executed later would undo this one, so this endpoint must not vote for it.
    if (Math.min(...unanswered.keys()) < ttl) {
      throw new EndpointError(endpoint.name, "timeout", "an earlier, shorter extension is unanswered");
    }
    unanswered.set(ttl, (unanswered.get(ttl) ?? 0) + 1);
    // If it fails, it stays there, because nobody learns whether it is executed.
    const answer = await this.#protocol.extend(call, this.#cell, ttl);
    const left = unanswered.get(ttl)! - 1;
    if (left > 0) unanswered.set(ttl, left);
    else unanswered.delete(ttl);
    return answer;
  }

  /**
   * If an endpoint has lost it, claims it there once more: a quorum has just shown that nobody else can have it.
   *
   * @param lost the claim that was listed there when the extension was sent
   */
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
        // A claim that has failed may be executed yet, so the release must look at it.
        if (lost.isOver) this.#claims[index] = claim;
        if ((await claim.ended).outcome !== "held") return;
        // The release looks at the claim that was lost, in case that is executed twice.
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
    // It waits for its turn like a claim, for `wait`, but not beyond the ttl, after which nothing is left. Then it is sent at once.
    const turn = { runtime, timeout, ms: Math.min(wait, this.#ttl) };
    const { round, isInBackground, result } = await turns.release(turn, async () => {
      const releaseOne = (call: Call, claim: Call) => this.#protocol.release(call, this.#cell, claim, true);
      const round = undo(settings, this.#claims, releaseOne);
      const isInBackground = keepAlive(settings, round.done);
      return { round, isInBackground, result: await round.result };
    });
    // Without waitUntil nothing else may keep the other requests alive.
    if (!isInBackground) await round.mostlyDone();
    this.#isDone = result !== "unavailable";
    const freed = this.#isDone ? result === "granted" : undefined;
    const error = this.#isDone ? undefined : new QuorumError("release", this.resources, round.votes());
    // Nobody would hear of it, and others would wait for each ttl. A run has events of its own.
    const isRun = this.#protocol.action !== undefined;
    if (!isRun && !settings.onEvent && (error?.cause as EndpointError | undefined)?.permanent) {
      console.warn(`redlock-edge: ${error!.message}`);
    }
    this.#reportEnd({ type: "released", elapsed: round.elapsed(), freed, error });
    return freed;
  }

  /** Reports the end of the hold, once. */
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
  // A routine written for `redlock`, which passes the signal alone, would never see an abort.
  aborted: "lock.signal.aborted, as in async ({ signal }) => …",
});

/** How often a lost claim is made again: a contender may have its part there for a moment. */
const restoreTries = 3;

/** The ttl of a request, in ms: nothing is held beyond the deadline, so Redis itself frees the lock then. */
export function ttlWithin(ttl: number, untilDeadline: number): number {
  return untilDeadline < ttl ? Math.max(1, Math.floor(untilDeadline)) : ttl;
}
