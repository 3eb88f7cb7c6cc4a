import { checkInteger } from "./check.ts";
import { EndpointError, LockLostError, QuorumError, type RedlockError } from "./errors.ts";
import { emit } from "./events.ts";
import { type Grant, heldRegister, takenRegister, tombstoneRetention } from "./grant.ts";
import { handOver, type Settings } from "./options.ts";
import { type Answer, ask, type Round } from "./quorum.ts";
import { type Call, drop, type Register, renew } from "./register.ts";
import { renewOnQuorum } from "./renew.ts";
import { Validity } from "./validity.ts";
import { withdraw } from "./withdraw.ts";

/** A lock as plain JSON, to be handed to another process. It holds the lock's token: treat it as a secret. */
export interface LockJSON {
  readonly resources: readonly string[];
  readonly prefix: string;
  readonly nonce: string;
  readonly owner: string;
  readonly ttl: number;
  /** Wall-clock time in ms since 1970 at which the validity ends. */
  readonly validUntil: number;
  readonly fence?: number;
}

/** How what is held is kept and given back on one endpoint; what is left out is as for a lock. */
export interface Custody {
  /** Gives it a new ttl, and never creates it; with ttl 0 it only looks. */
  renew?(call: Call, register: Register, ttl: number): Promise<Answer>;
  /** Gives it back, and remembers for `retention` ms, if that is not 0, that a late request may not take it. */
  drop?(call: Call, register: Register, retention: number): Promise<Answer>;
}

/**
 * The handle of a successful acquire. It is valid for `remaining()` ms: that is what the holder may rely on,
 * and it ends by itself unless it is extended.
 *
 * @example
 * await using lock = await redlock.acquire("invoice:42", { fencing: true });
 * await db.run("UPDATE invoices SET paid = 1, fence = ?1 WHERE id = 42 AND fence < ?1", lock.fence);
 */
export class Lock {
  /** The resources held, in the order given. */
  readonly resources: readonly string[];
  /** The owner's random value in Redis, or the caller's own token. A secret. */
  readonly token: string;
  /** Fencing token: larger than that of every earlier grant of these resources. Only with `fencing`. */
  readonly fence: number | undefined;
  readonly #settings: Settings;
  readonly #grant: Grant;
  readonly #register: Register;
  readonly #custody: Required<Custody>;
  readonly #validity: Validity;
  /** The round that took it; its late requests are cleaned up after at the release. */
  readonly #round: Round<Answer> | undefined;
  /** By endpoint: the least ttl of an extension that may yet be executed there. */
  readonly #shorter = new Map<string, number>();
  #ttl: number;
  #extension: Promise<unknown> = Promise.resolve();
  #release: Promise<boolean> | undefined;
  #freed = false;

  /** @internal Locks come from {@link Redlock.acquire}. */
  constructor(
    settings: Settings,
    grant: Grant,
    ttl: number,
    elapsed: () => number,
    options: {
      fence?: number | undefined;
      limit: number;
      left?: number;
      round?: Round<Answer>;
      custody?: Custody | undefined;
    },
  ) {
    this.resources = grant.resources;
    this.token = grant.owner || grant.nonce;
    this.fence = options.fence;
    this.#settings = settings;
    this.#grant = grant;
    this.#register = heldRegister(grant);
    this.#custody = { renew, drop, ...options.custody };
    this.#ttl = ttl;
    this.#round = options.round;
    const { runtime, driftFactor, onEvent } = settings;
    this.#validity = new Validity({
      runtime,
      driftFactor,
      elapsed,
      ttl,
      left: options.left,
      limit: options.limit,
      lostError: (why): RedlockError => new LockLostError(grant.resources, why),
      onLost: (reason) => emit(onEvent, { type: "lost", resources: grant.resources, reason }),
    });
  }

  /** The ttl that Redis was last asked for, in ms. */
  get ttl(): number {
    return this.#ttl;
  }

  /**
   * ms of validity left; ≤ 0 once it is gone. Counted from before the request that granted or extended it, by
   * the faster of two clocks, drift taken off. On Cloudflare Workers both clocks stand still between I/O: after
   * long computation ask {@link Lock.verify} instead.
   */
  remaining(): number {
    return this.#validity.remaining();
  }

  /**
   * Aborts with {@link LockLostError} when the lock is lost: when its validity ends, by a local timer that needs
   * no answer from anybody, or as soon as an endpoint quorum says so. A release does not abort it.
   */
  get signal(): AbortSignal {
    return this.#validity.signal;
  }

  /**
   * Renews the lock on a quorum. It never re-creates what is gone; if no quorum answers, the old validity stands,
   * or the shorter one that was asked for: some endpoint may have begun to count.
   *
   * @param ttl what to ask for from now on, in ms, an integer of at least 10; default: the lock's ttl
   * @returns the new validity in ms
   * @throws LockLostError when it is gone; without a request when its validity is over
   * @throws QuorumError when too few endpoints answered; it may be tried again while validity is left
   */
  async extend(ttl: number = this.#ttl): Promise<number> {
    checkInteger("ttl", ttl, 10, 2_147_483_647);
    // One at a time: HTTP keeps no order, and the shorter of two extensions must not be executed last.
    const extension = this.#extension.then(() => this.#extend(ttl));
    this.#extension = extension.catch(() => undefined);
    return extension;
  }

  /**
   * Frees the lock on every endpoint.
   *
   * @returns true: freed on a quorum; false: it was already gone, or released before
   * @throws QuorumError when it cannot be told; the ttl frees it. It may be tried again.
   */
  async release(): Promise<boolean> {
    if (this.#freed) return false;
    this.#release ??= this.#free();
    try {
      return await this.#release;
    } finally {
      this.#release = undefined;
    }
  }

  /**
   * Asks a quorum whether the lock is still held. Changes nothing when it is; the validity stays as it was.
   *
   * @throws QuorumError when too few endpoints answered
   */
  async verify(): Promise<boolean> {
    if (this.#validity.released || this.#validity.loss) return false;
    const round = ask(this.#settings, this.#settings.timeout, (call) =>
      this.#custody.renew(call, this.#register, 0),
    );
    const verdict = await round.verdict;
    if (verdict === "no quorum") throw new QuorumError("verify", this.resources, round.votes());
    if (verdict === "refused") this.#validity.lose("its token is gone from a quorum");
    return verdict === "granted" && !this.#validity.loss;
  }

  /**
   * The lock for another process, which goes on with {@link Redlock.resume}; stop using this handle then. The
   * two processes' wall clocks must agree; where they may not, extend right after resuming.
   */
  toJSON(): LockJSON {
    const { prefix, nonce, owner } = this.#grant;
    const validUntil = Math.floor(this.#settings.runtime.now() + this.remaining());
    const json = { resources: this.resources, prefix, nonce, owner, ttl: this.#ttl, validUntil };
    return this.fence === undefined ? json : { ...json, fence: this.fence };
  }

  /** Releases the lock at the end of an `await using` block. A failed release is left to the ttl. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release().catch(() => undefined);
  }

  /** @internal Extends until it is released, lost, or held for `maxHold`. */
  keepExtending(): void {
    const { maxHold, backoff } = this.#settings;
    const ttl = () => this.#ttl;
    void this.#validity.autoExtend({ ttl, maxHold, backoff }, (length) => this.extend(length));
  }

  /** @internal Leaves it to its ttl, and stops watching the clock for it. */
  abandon(): void {
    this.#validity.release();
  }

  async #extend(ttl: number): Promise<number> {
    const { resources } = this;
    const settings = this.#settings;
    const spent = { requests: 0, commands: 0 };
    this.#ttl = ttl;
    const extendOne = (call: Call) => {
      // A shorter extension that may yet be executed here would undo this one: its vote could not be relied on.
      const { name } = call.endpoint;
      if ((this.#shorter.get(name) ?? ttl) < ttl) {
        throw new EndpointError(name, "timeout", `an earlier, shorter extension is unanswered`);
      }
      return this.#custody.renew(call, this.#register, ttl);
    };
    const round = await renewOnQuorum(settings, this.#validity, ttl, resources, spent, extendOne, (asked) =>
      this.#rememberUnanswered(asked, ttl),
    );
    emit(settings.onEvent, { type: "extended", resources, ttl, elapsed: round.elapsed(), ...spent });
    return this.remaining();
  }

  #rememberUnanswered(round: Round<Answer>, ttl: number): void {
    this.#settings.endpoints.forEach(({ name }, index) => {
      const outcome = round.answers[index]?.outcome;
      if (outcome === "granted" || outcome === "lost") return;
      const before = this.#shorter.get(name);
      this.#shorter.set(name, Math.min(before ?? ttl, ttl));
      // Its answer, should it still come, proves that it has been executed.
      void round.requests[index]?.then((answer) => {
        if (answer.outcome !== "error" && before === undefined) this.#shorter.delete(name);
      });
    });
  }

  async #free(): Promise<boolean> {
    const settings = this.#settings;
    const { resources } = this;
    this.#validity.release();
    const round = withdraw(settings, this.#round, (call) => this.#drop(call), true);
    // Without waitUntil nothing else keeps these requests alive, so every answer is waited for.
    if (!handOver(settings, round.done)) await round.done;
    const verdict = await round.verdict;
    if (verdict === "no quorum") {
      throw new QuorumError("release", resources, round.votes());
    }
    const freed = verdict === "granted";
    this.#freed = true;
    emit(settings.onEvent, { type: "released", resources, freed, elapsed: round.elapsed(), ...round.spent });
    return freed;
  }

  #drop(call: Call): Promise<Answer> {
    const index = this.#settings.endpoints.indexOf(call.endpoint);
    const outcome = this.#round?.answers[index]?.outcome;
    const settled = !this.#round || outcome === "granted" || outcome === "held";
    if (settled) return this.#custody.drop(call, this.#register, 0);
    // The take may yet be executed there; it must find its tombstone, if it looks for one.
    const { tombstone } = takenRegister(this.#grant);
    return this.#custody.drop(call, { ...this.#register, tombstone }, tombstoneRetention);
  }
}
