import { checkInteger } from "../check.ts";
import { EndpointError, LockLostError, QuorumError, type RedlockError } from "../errors.ts";
import { emit } from "../events.ts";
import { rollback } from "../quorum/rollback.ts";
import { type Answer, type Failure, type Round, runRound } from "../quorum/round.ts";
import {
  type Call,
  extend,
  type Fencing,
  type Register,
  type RegisterAnswer,
  raiseFence,
  release,
  restore,
} from "../redis/register.ts";
import { renewOnQuorum } from "./extend.ts";
import type { LockJSON } from "./handoff.ts";
import {
  acquiredRegister,
  counterTtl,
  guardedRegister,
  heldRegister,
  type LockRequest,
  tombstoneRetention,
} from "./lock-request.ts";
import { runInBackground, type Settings } from "./options.ts";
import { Validity } from "./validity.ts";

/** How what is held is kept and given back on one endpoint; what is left out is as for a lock. */
export interface HoldOperations {
  /** Gives it a new ttl, and never creates it; with ttl 0 it only looks. */
  extend?(call: Call, register: Register, ttl: number): Promise<Answer>;
  /** Gives it back, and remembers for `retention` ms, if that is not 0, that a late request may not take it. */
  release?(call: Call, register: Register, retention: number): Promise<Answer>;
}

/** What a handle is made of, beside what was asked for. */
export interface Held {
  readonly ttl: number;
  /** Time since before the request that granted it. */
  readonly elapsed: () => number;
  readonly fence?: number | undefined;
  /** Bound on the time held, in ms. */
  readonly limit: number;
  /** ms of validity that are left at most. Default: all of the ttl's. */
  readonly left?: number;
  /** The round that took it; undefined where another process did. */
  readonly round?: Round<Answer>;
  readonly operations?: HoldOperations | undefined;
  /** Endpoints at which a request that takes it may yet be executed, beside those that the round shows. */
  readonly unsettled?: readonly string[];
  /** By endpoint: the least ttl of an extension that may yet be executed there. Default: none. */
  readonly unanswered?: Readonly<Record<string, number>>;
}

/** How often a release asks an endpoint again where other handles of the owner have acquired the lock meanwhile. */
const maxReleaseTries = 4;

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
  readonly #grant: LockRequest;
  readonly #settings: Settings;
  readonly #register: Register;
  readonly #operations: Required<HoldOperations>;
  /** No synchronizer: what an endpoint has lost can be put back there. */
  readonly #isPlain: boolean;
  readonly #validity: Validity;
  /** The round that took it; its late requests are cleaned up after at the release. */
  readonly #round: Round<Answer> | undefined;
  /** Names of the endpoints of all requests that take it and may yet be executed. */
  readonly #unsettled: string[];
  /** By endpoint: the least ttl of an extension that may yet be executed there. */
  readonly #shorter: Map<string, number>;
  /** By endpoint: the marks that an extension of an owner's lock has found or left there. */
  readonly #marks = new Map<string, string>();
  /** ms since the fence's counters were renewed. */
  #counted: () => number;
  #ttl: number;
  #extension: Promise<unknown> = Promise.resolve();
  #release: Promise<boolean> | undefined;
  #isGone = false;
  /** Requests that put it back look for its tombstone; those that take a plain lock cannot. */
  #mayRestore: boolean;

  /** @internal Locks come from {@link Redlock.acquire}. */
  constructor(settings: Settings, grant: LockRequest, held: Held) {
    const { ttl, elapsed, fence, limit, left, round, operations } = held;
    this.resources = grant.resources;
    this.token = grant.owner || grant.nonce;
    this.fence = fence;
    this.#settings = settings;
    this.#grant = grant;
    this.#register = heldRegister(grant);
    this.#operations = { extend, release, ...operations };
    this.#isPlain = !operations;
    this.#ttl = ttl;
    this.#round = round;
    this.#mayRestore = !round;
    const { runtime, driftFactor, onEvent, endpoints } = settings;
    this.#unsettled = [...(held.unsettled ?? [])];
    endpoints.forEach(({ name }, index) => {
      if (round && !isSettled(round.answers[index])) void this.#settle(name, round.requests[index]!);
    });
    this.#shorter = new Map(Object.entries(held.unanswered ?? {}));
    // Of a lock that another process took it is not known when: its first extension renews them.
    this.#counted = round ? elapsed : () => Infinity;
    this.#validity = new Validity({
      runtime,
      driftFactor,
      elapsed,
      ttl,
      left,
      limit,
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
   * Renews the lock on a quorum. It never re-creates a lock that is gone; where a quorum still has it, it is put back
   * on endpoints that have lost it (a restart) and have nothing else in its place. If no quorum answers, the old
   * validity stands, or the shorter one that was asked for: some endpoint may have begun to count.
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
   * Frees the lock on every endpoint. A lock with a token of the owner's own ends for all handles that the owner has
   * at that moment, and for none that is acquired after this call has returned.
   *
   * @returns true: freed on a quorum; false: it was already gone, or released before
   * @throws QuorumError when it cannot be told; the ttl frees it. It may be tried again.
   */
  async release(): Promise<boolean> {
    if (this.#isGone) return false;
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
    const round = runRound(this.#settings, this.#settings.timeout, (call) =>
      this.#operations.extend(call, this.#register, 0),
    );
    const result = await round.result;
    if (result === "unavailable") throw new QuorumError("verify", this.resources, round.votes());
    if (result === "refused") this.#validity.lose("its token is gone from a quorum");
    return result === "granted" && !this.#validity.loss;
  }

  /**
   * Hands the lock over to another process, which goes on with {@link Redlock.resume}. This handle ends, as if it had
   * been released, but the lock stays held: nothing extends it until it is resumed. Waits for an extension under way.
   *
   * The two processes' wall clocks must agree; where they may not, extend right after resuming.
   *
   * @returns what `resume` needs, as plain JSON. It holds the lock's token: treat it as a secret
   * @throws LockLostError when the lock is lost, released, or handed over already
   *
   * @example
   * await queue.send({ job, lock: await lock.handoff() });
   */
  async handoff(): Promise<LockJSON> {
    for (let current: unknown; current !== this.#extension; ) {
      current = this.#extension;
      await this.#extension;
    }
    const validity = this.#validity;
    if (validity.released) throw validity.lose("it was released or handed over");
    if (validity.loss) throw validity.loss;
    const { runtime, endpoints } = this.#settings;
    const { prefix, nonce, owner, resources } = this.#grant;
    const validUntil = Math.floor(runtime.now() + validity.remaining());
    validity.release();
    this.#isGone = true;
    return {
      resources,
      prefix,
      nonce,
      owner,
      ttl: this.#ttl,
      validUntil,
      ...(this.fence !== undefined && { fence: this.fence }),
      endpoints: endpoints.map(({ name }) => name),
      unsettled: [...this.#unsettled],
      unanswered: Object.fromEntries(this.#shorter),
    };
  }

  /** Releases the lock at the end of an `await using` block. A failed release is left to the ttl. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release().catch(() => undefined);
  }

  /** @internal What stands in Redis as this handle's round wrote it: the nonce, and behind it the owner. */
  get value(): string {
    return this.#register.value;
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
    const cost = { requests: 0, commands: 0 };
    this.#ttl = ttl;
    const { fenceRetention } = this.#grant;
    // The counters must outlive the lock, however long it is held.
    const renewsCounters = this.fence !== undefined && this.#counted() + ttl > fenceRetention;
    const extendOne = async (call: Call) => {
      // A shorter extension that may yet be executed here would undo this one: its vote could not be relied on.
      const { name } = call.endpoint;
      if ((this.#shorter.get(name) ?? ttl) < ttl) {
        throw new EndpointError(name, "timeout", `an earlier, shorter extension is unanswered`);
      }
      const answer: RegisterAnswer = await (renewsCounters
        ? raiseFence(call, guardedRegister(this.#grant), this.#fencing(ttl), ttl)
        : this.#operations.extend(call, this.#register, ttl));
      if (answer.marks) this.#marks.set(name, answer.marks);
      return answer;
    };
    const round = await renewOnQuorum(settings, this.#validity, ttl, resources, cost, extendOne, (asked) =>
      this.#rememberUnanswered(asked, ttl),
    );
    if (renewsCounters) this.#counted = round.elapsed;
    if (this.#isPlain) this.#restoreWhereLost(round, ttl);
    emit(settings.onEvent, { type: "extended", resources, ttl, elapsed: round.elapsed(), ...cost });
    return this.remaining();
  }

  /** The least that the counters must say, and how long they must be remembered. */
  #fencing(ttl: number): Fencing {
    if (this.fence === undefined) return { least: 0, retention: 0 };
    return { least: this.fence, retention: counterTtl(this.#grant, ttl) };
  }

  /** Puts the lock back where it is gone, now that a quorum has shown that nobody else can have it. */
  #restoreWhereLost({ requests }: Round<Answer>, ttl: number): void {
    const settings = this.#settings;
    const { endpoints, runtime, timeout } = settings;
    for (const [index, endpoint] of endpoints.entries()) {
      const restored = requests[index]!.then(async ({ outcome }) => {
        if (outcome !== "lost" || this.#validity.released || this.#validity.loss) return;
        const register = guardedRegister(this.#grant);
        const perform = (call: Call) => restore(call, register, ttl, this.#fencing(ttl));
        this.#mayRestore = true;
        const [request] = runRound({ endpoints: [endpoint], runtime }, timeout, perform).requests;
        await this.#settle(endpoint.name, request!);
      });
      runInBackground(settings, restored);
    }
  }

  /** Until it is answered, a request may be executed after the release, which then leaves a tombstone. */
  async #settle(name: string, request: Promise<Answer | Failure>): Promise<void> {
    this.#unsettled.push(name);
    if (isSettled(await request)) this.#unsettled.splice(this.#unsettled.indexOf(name), 1);
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
    let isWaitedFor = true;
    const dropOne = (call: Call) => this.#drop(call, () => isWaitedFor);
    const round = rollback(settings, this.#round, dropOne, true);
    // Without waitUntil nothing else keeps these requests alive, so every answer is waited for.
    if (!runInBackground(settings, round.done)) await round.done;
    const result = await round.result;
    isWaitedFor = false;
    if (result === "unavailable") {
      throw new QuorumError("release", resources, round.votes());
    }
    const freed = result === "granted";
    this.#isGone = true;
    emit(settings.onEvent, { type: "released", resources, freed, elapsed: round.elapsed(), ...round.cost });
    return freed;
  }

  /**
   * Frees it on one endpoint. Of an owner's lock it names the mark that this handle has left there, and where another
   * handle has taken the lock since, the one that the endpoint tells: so no request can end what is acquired after it
   * was sent.
   *
   * @param isWaitedFor whether the release has not returned: what is acquired afterwards is not to be freed
   */
  async #drop(call: Call, isWaitedFor: () => boolean): Promise<Answer> {
    const grant = this.#grant;
    const settings = this.#settings;
    const { tombstone } = this.#mayRestore ? guardedRegister(grant) : acquiredRegister(grant);
    // A request that takes it may yet be executed there, or an owner's release a second time: both look for it.
    const isGuarded = this.#unsettled.includes(call.endpoint.name) || (this.#isPlain && grant.owner !== "");
    const register = isGuarded ? { ...this.#register, tombstone } : this.#register;
    const retention = isGuarded ? tombstoneRetention : 0;
    const { endpoint, signal } = call;
    const granted: RegisterAnswer | Failure | undefined =
      this.#round?.answers[settings.endpoints.indexOf(endpoint)];
    let marks = this.#marks.get(endpoint.name) ?? (granted && "marks" in granted ? granted.marks : undefined);
    for (let times = 0; times < maxReleaseTries; times += 1) {
      const answer: RegisterAnswer = await this.#operations.release(call, { ...register, marks }, retention);
      if (answer.marks === undefined) return answer;
      marks = answer.marks;
      if (!isWaitedFor() || signal.aborted) break;
    }
    // It stands: the owner has acquired it again.
    return { outcome: "held" };
  }
}

/** Whether a take is over: executed, or refused. */
function isSettled(answer: Answer | Failure | undefined): boolean {
  return answer?.outcome === "granted" || answer?.outcome === "held";
}
