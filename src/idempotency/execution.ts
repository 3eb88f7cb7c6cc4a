import type { Ask } from "../endpoints/ask.ts";
import { secondsHint } from "../errors.ts";
import { autoExtend } from "../lock/auto-extend.ts";
import { extendOnQuorum } from "../lock/extend.ts";
import { Validity } from "../lock/validity.ts";
import { undoQuietly, unlessRefused } from "../quorum/undo.ts";
import { keepAlive } from "../runtime.ts";
import type { Attempt } from "./attempts.ts";
import type { RunClaim } from "./claim.ts";
import { complete } from "./complete.ts";
import { LeaseLostError } from "./errors.ts";
import type { Report } from "./events.ts";
import type { UnstoredReason } from "./record.ts";
import { encodeResult } from "./result.ts";
import { leaseWithin, type RunRequest } from "./run-request.ts";

/** What a handler gets to know of its run. */
export interface RunContext {
  readonly key: string;
  /** Identifies this run; no other run has the same. A secret, which no log shows: the property is not enumerable. */
  readonly token: string;
  /** Aborts with {@link LeaseLostError} as soon as another run may have taken over. */
  readonly signal: AbortSignal;
  /** ms of the lease that remain; the lease is renewed meanwhile. */
  remaining(): number;
  /** Larger than that of every earlier lock and run of the resources. Only with `lock`. */
  readonly fence?: number | undefined;
}

/** What the handler of a run with `lock` gets to know. */
export interface LockedRunContext extends RunContext {
  readonly fence: number;
}

/** The result of a call: the handler's value as it is stored, or that of the run that came first. */
export interface Outcome<Value> {
  readonly status: "executed" | "replayed";
  readonly value: Value;
  /**
   * Why the result is not stored; absent where it is. `unserializable`, `too-large`: the key is complete, the handler
   * does not run again, and duplicates get a {@link ResultUnavailableError}. `no-quorum`: too few endpoints have
   * stored it so far; storing goes on within the lease, and if that fails, the next call runs the handler again.
   */
  readonly unstored?: UnstoredReason | "no-quorum";
}

/** What {@link Idempotency.run} runs. */
export type Handler<Value, Run extends RunContext = RunContext> = (run: Run) => Promise<Value> | Value;

/** One execution of the handler, under a claim that a quorum has granted. */
export class Execution<Value> {
  readonly validity: Validity;
  readonly #request: RunRequest<Value>;
  readonly #claim: RunClaim;
  readonly #report: Report;

  constructor(request: RunRequest<Value>, claim: RunClaim, report: Report) {
    this.#request = request;
    this.#claim = claim;
    this.#report = report;
    const { settings, key } = request;
    this.validity = new Validity({
      runtime: settings.runtime,
      driftFactor: settings.driftFactor,
      elapsed: claim.round.elapsed,
      ttl: Math.min(claim.lease, claim.limit),
      term: "lease",
      lostError: (why) => new LeaseLostError(key, why),
      onLost: () => undefined,
    });
    if (claim.limit < claim.lease) this.validity.endsBy = "deadline";
  }

  /** Runs the handler, and stores its result or rolls the claim back. `attempt`: its count, where runs are counted. */
  async run(handler: Handler<Value>, attempt: Attempt | undefined): Promise<Outcome<Value>> {
    this.#renewLease();
    let value: Value;
    try {
      value = await handler(this.#context());
    } catch (error) {
      const rolledBack = this.#rollBack(attempt);
      if (!keepAlive(this.#request.settings, rolledBack)) await rolledBack;
      this.#report("failed", { error });
      throw error;
    }
    return this.#store(value);
  }

  /** Renews the lease until the handler has ended. */
  #renewLease(): void {
    const { settings, key } = this.#request;
    const { operations, lease, limit, round } = this.#claim;
    const { runtime, maxHold } = settings;
    const renew = async (ttl: number) => {
      // A renewal that is cut by the deadline includes the time to complete, like the begin.
      const newLease = limit <= maxHold ? leaseWithin(settings, ttl) : ttl;
      const perform = (call: Ask) => operations.extend(call, newLease);
      await extendOnQuorum(settings, this.validity, { ttl, names: [key], perform });
    };
    const held = round.elapsed;
    void autoExtend(this.validity, { runtime, ttl: () => lease, held, maxHold, limit, extend: renew });
  }

  #context(): RunContext {
    const { validity } = this;
    const { token, operations } = this.#claim;
    const context = {
      key: this.#request.key,
      token,
      fence: operations.fence?.value,
      get signal() {
        return validity.signal;
      },
      remaining: () => validity.remaining(),
    };
    // No log shows it: with it, the claim could be ended.
    return Object.defineProperty(context, "token", { enumerable: false });
  }

  /** Frees the key after the handler has thrown. */
  #rollBack(attempt: Attempt | undefined): Promise<void> {
    const { settings } = this.#request;
    const { operations, round } = this.#claim;
    this.validity.end();
    const free = () => {
      const perform = unlessRefused((call) => operations.free(call));
      return undoQuietly(settings, round.calls, perform).mostlyDone();
    };
    // The count first: a run that finds the key free must count from the beginning.
    return attempt ? attempt.clear().then(free) : free();
  }

  /**
   * Stores the handler's result. The effect has happened, so the caller gets its value even where storing fails: as later
   * callers get it, or, where they do not, as the handler returned it.
   */
  async #store(value: Value): Promise<Outcome<Value>> {
    const { key, codec } = this.#request;
    // From here on the local clock does not matter: each endpoint compares the record.
    const lease = this.validity.remaining();
    this.validity.end();
    const result = encodeResult(codec, value);
    const { roundResult, unstored } = await complete(this.#request, this.#claim, result, lease);
    if (roundResult === "refused") {
      this.#report("lost");
      const why = "another run took over before the result could be stored";
      throw new LeaseLostError(key, why + secondsHint(this.#claim.lease));
    }
    // Without a quorum the record stays pending and keeps other runs away.
    const reason = roundResult === "granted" ? unstored : "no-quorum";
    if (!reason) {
      this.#report("executed");
      return { status: "executed", value: result.value };
    }
    this.#report("unstored", { reason, ...("error" in result && { error: result.error }) });
    return { status: "executed", value: reason === "too-large" ? value : result.value, unstored: reason };
  }
}
