import { type RequestHook, type RequestWatch, watchRequest } from "../endpoints/ask.ts";
import { type Endpoint, timeoutError } from "../endpoints/endpoint.ts";
import type { EndpointError, Vote } from "../errors.ts";
import { type Runtime, stopwatch, type WaitUntil } from "../runtime.ts";
import { Call, type CallRound, type Failure, type Perform } from "./call.ts";
import { type Answer, quorumOf, type RoundResult, tally } from "./tally.ts";

// One round: the same request to every endpoint at once, and a result as soon as the answers allow one.

/** What every round of a client uses. */
export interface RoundContext {
  readonly endpoints: readonly Endpoint[];
  readonly runtime: Runtime;
  /** An endpoint without an answer after so many ms counts as failed. */
  readonly timeout: number;
  /** Keeps alive what goes on after the call. Default: the call waits for it, but not for what it repeats. */
  readonly waitUntil?: WaitUntil | undefined;
  /** Called for every endpoint that failed. */
  readonly onFailure?: ((error: EndpointError) => void) | undefined;
  /** Called for every request that has ended. */
  readonly onRequest?: RequestHook | undefined;
}

/** What belongs to one round only. */
export interface RoundOptions {
  /** An endpoint has at most so many ms to answer, if that is less than the context's timeout. */
  readonly timeout?: number;
  /**
   * Whether a split round, with grants and refusals, is decided before its timeout: a silent endpoint must not make
   * contenders keep their parts from each other for so long. Default false.
   */
  readonly isHasty?: boolean;
}

/** The least ms that the endpoints have that answer last. */
export const leastPatience = 50;

/** A round under way. */
export class Round<A extends Answer = Answer> implements CallRound<A> {
  /** One for each endpoint, in the client's order. */
  readonly calls: readonly Call<A>[];
  /** Resolves early: never waits for an endpoint whose answer cannot change it. */
  readonly result: Promise<RoundResult>;
  /** Every call has its answer, or has timed out; or a hasty round is decided. */
  readonly done: Promise<void>;
  /** ms since before the first request was sent. */
  readonly elapsed: () => number;
  readonly #context: RoundContext;
  readonly #timeout: number;
  readonly #isHasty: boolean;
  #missing: number;
  #decide!: (result: RoundResult) => void;
  #finish!: () => void;
  #cancelTimeout: () => void;
  #cancelHaste: (() => void) | undefined;
  /** Few rounds have one. */
  #listeners: Set<() => void> | undefined;
  #controller: AbortController | undefined;
  /** What the signal aborts with. */
  #reason: Error | undefined;

  constructor(context: RoundContext, perform: Perform<A>, options: RoundOptions) {
    const { endpoints, runtime } = context;
    const { timeout = Infinity, isHasty = false } = options;
    this.elapsed = stopwatch(runtime);
    this.#context = context;
    this.#timeout = Math.min(timeout, context.timeout);
    this.#isHasty = isHasty;
    this.#missing = endpoints.length;
    this.result = new Promise((resolve) => {
      this.#decide = resolve;
    });
    this.done = new Promise((resolve) => {
      this.#finish = resolve;
    });
    if (endpoints.length === 0) this.#finish();
    // One turn later: the process may have been busy, with answers that it has received and not yet read.
    this.#cancelTimeout = runtime.timer(this.#timeout, () => {
      this.#cancelTimeout = runtime.timer(0, () => this.#abort());
    });
    this.calls = endpoints.map((endpoint) => new Call(endpoint, this));
    // Only now, because a call that fails at once looks at all of them.
    this.calls.forEach((call, index) => {
      call.start(perform, index);
    });
  }

  /** Whether the time is over. */
  get hasGivenUp(): boolean {
    return this.#reason !== undefined;
  }

  onGiveUp(listener: () => void): () => void {
    this.#listeners ??= new Set();
    this.#listeners.add(listener);
    return () => this.#listeners?.delete(listener);
  }

  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#reason) this.#controller.abort(this.#reason);
    return this.#controller.signal;
  }

  /** The answers so far, as errors report them. */
  votes(): Vote[] {
    return this.calls.map(({ vote }) => vote);
  }

  /** The usable answers so far: without the endpoints that failed. */
  answers(): A[] {
    return this.calls.flatMap(({ answer }) => (answer && answer.outcome !== "error" ? [answer as A] : []));
  }

  /** Watches a request to an endpoint, if somebody hears of requests. */
  watch({ name }: Endpoint): RequestWatch | undefined {
    const { runtime, onRequest } = this.#context;
    return onRequest && watchRequest(name, () => runtime.monotonic(), onRequest);
  }

  /** Hears that a call has got its answer. */
  note(answer: A | Failure): void {
    if (answer.outcome === "error") this.#context.onFailure?.(answer.cause);
    this.#missing -= 1;
    this.#cancelHaste?.();
    const result = tally(this.calls);
    if (result) this.#decide(result);
    else if (this.#isHasty && this.#isSplit()) {
      // The endpoints that answer last have as long again as the others have taken.
      const patience = Math.max(this.elapsed(), leastPatience);
      this.#cancelHaste = this.#context.runtime.timer(patience, () => {
        this.#decide("unavailable");
        this.#finish();
      });
    }
    if (this.#missing > 0) return;
    this.#cancelTimeout();
    // A lock keeps its calls, and must not keep a signal for each of them.
    if (!this.#reason) this.#controller = undefined;
    this.#finish();
  }

  /** Whether some have granted, and others refused. */
  #isSplit(): boolean {
    const outcomes: unknown[] = this.calls.map(({ answer }) => answer?.outcome);
    return outcomes.includes("granted") && (outcomes.includes("held") || outcomes.includes("lost"));
  }

  /** The time is over. The endpoints have a turn to say what they know, for example that a command was never sent. */
  #abort(): void {
    const timeout = this.#timeout;
    // A usual mistake: seconds instead of ms.
    const hint = timeout < 50 ? ": raise the ttl or the timeout (in ms)" : "";
    this.#cancelTimeout = this.#context.runtime.timer(0, () => this.#expire());
    this.#reason = new Error(`no answer within ${Math.round(timeout)} ms${hint}`);
    this.#controller?.abort(this.#reason);
    for (const listener of this.#listeners ?? []) listener();
  }

  /** Fails what has not answered in time. Not left to the endpoints: one may ignore its signal. */
  #expire(): void {
    for (const call of this.calls) {
      call.settle({ outcome: "error", cause: timeoutError(call.endpoint.name, this.signal) });
    }
  }
}

/** Sends the request that `perform` makes to every endpoint at once. */
export function runRound<A extends Answer>(
  context: RoundContext,
  perform: Perform<A>,
  options: RoundOptions = {},
): Round<A> {
  return new Round(context, perform, options);
}

/**
 * For how many ms no later round can be granted, because too many endpoints have asked to be left alone; Infinity: too many
 * failed in a way that lasts.
 */
export function untilUsable(votes: readonly Vote[]): number {
  const pauses = votes.map(({ cause }) => (cause?.permanent ? Infinity : (cause?.retryAfter ?? 0)));
  // The longest pauses are those of the endpoints that a quorum can do without.
  return pauses.sort((a, b) => b - a)[votes.length - quorumOf(votes.length)] ?? 0;
}
