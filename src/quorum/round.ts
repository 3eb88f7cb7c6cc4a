import type { Ask, EndedRequest } from "../endpoints/ask.ts";
import {
  type Caller,
  type Command,
  type Endpoint,
  sendFor,
  timeoutError,
  unsentError,
} from "../endpoints/endpoint.ts";
import { EndpointError, isEndpointError, type Vote } from "../errors/errors.ts";
import { type Runtime, settledWithin, stopwatch, type WaitUntil } from "../runtime/runtime.ts";
import { type Answer, quorumOf, type RoundResult, tally } from "./tally.ts";

// One round: one request to every endpoint at once, and a result as soon as the answers allow one.

/** The failure of an endpoint stands in place of its answer. */
export interface Failure {
  readonly outcome: "error";
  readonly cause: EndpointError;
}

/** Makes the request to one endpoint. `index` is its place in the client's order. */
export type Perform<A extends Answer> = (call: Call, index: number) => Promise<A>;

/** One request of a round to one endpoint, and its outcome. */
export class Call<A extends Answer = Answer> implements Ask {
  readonly endpoint: Endpoint;
  /**
   * Its answer, or its failure: a timeout counts as one. Undefined until one of them is known. Once it is known, it never
   * changes.
   */
  answer: A | Failure | undefined = undefined;
  /** Resolves with what really came of it: an answer may come after the timeout. Never rejects. */
  ended!: Promise<A | Failure>;
  /** Whether the endpoint may execute it: false if it has said that it was given up before it was sent. */
  isSent = false;
  readonly #round: Round<A>;
  /** What really came of it, once that is known. */
  #outcome: A | Failure | undefined = undefined;
  #settled: Promise<void> | undefined = undefined;
  #settle: (() => void) | undefined = undefined;

  constructor(endpoint: Endpoint, round: Round<A>) {
    this.endpoint = endpoint;
    this.#round = round;
  }

  /** Resolves when `answer` is known. */
  get settled(): Promise<void> {
    // Few ask for it.
    this.#settled ??= new Promise((resolve) => {
      if (this.answer) resolve();
      else this.#settle = resolve;
    });
    return this.#settled;
  }

  /** Whether it cannot be executed any more: it was answered, or given up before it was sent. */
  get isOver(): boolean {
    const known = this.#outcome ?? this.answer;
    return known !== undefined && (known.outcome !== "error" || !this.isSent);
  }

  /** Whether it has done nothing, and will not: it was refused, or given up before it was sent. */
  get hasDoneNothing(): boolean {
    return this.isOver && (this.#outcome ?? this.answer)!.outcome !== "granted";
  }

  async send(command: Command): Promise<unknown> {
    // It would be executed after its undo.
    if (this.#round.hasGivenUp) throw unsentError(this.endpoint.name);
    const wasSent = this.isSent;
    this.isSent = true;
    try {
      return await this.#request(command);
    } catch (error) {
      if ((error as EndpointError).unsent) this.isSent = wasSent;
      throw error;
    }
  }

  /** Sends a command beside its own, in one request if it can. It does not matter what becomes of it. */
  tell(command: Command): void {
    this.#request(command).catch(() => undefined);
  }

  /** @internal Begins it. */
  async start(perform: Perform<A>, index: number): Promise<A | Failure> {
    try {
      this.#outcome = await perform(this, index);
    } catch (error) {
      this.#outcome = { outcome: "error", cause: this.#errorOf(error) };
    }
    this.settle(this.#outcome);
    return this.#outcome;
  }

  /** @internal Takes the first one as its answer: after a timeout the failure stands. */
  settle(answer: A | Failure): void {
    if (this.answer) return;
    this.answer = answer;
    this.#settle?.();
    this.#round.note(answer);
  }

  async #request(command: Command): Promise<unknown> {
    const { endpoint } = this;
    const round = this.#round;
    const watch = watchRequest(endpoint, round.context);
    try {
      const reply = await sendFor(endpoint, command, round, watch?.onSent);
      watch?.end();
      return reply;
    } catch (reason) {
      // An endpoint that a user has made may reject with the reason of its signal.
      const isTimeout = round.hasGivenUp && !isEndpointError(reason);
      const error = isTimeout ? timeoutError(endpoint.name, round.signal) : this.#errorOf(reason);
      watch?.end(error);
      throw error;
    }
  }

  #errorOf(error: unknown): EndpointError {
    if (isEndpointError(error)) return error;
    // An endpoint that a user has made threw it, or a reply made no sense.
    const reason = error instanceof Error ? error.message : String(error);
    return new EndpointError(this.endpoint.name, "malformed", reason, { cause: error });
  }
}

/** What every round of a client uses. */
export interface RoundContext {
  readonly endpoints: readonly Endpoint[];
  readonly runtime: Runtime;
  /** An endpoint without an answer after so many ms counts as failed. */
  readonly timeout: number;
  /** Keeps alive what goes on after the call. Default: the call waits for it, but not for its repetitions. */
  readonly waitUntil?: WaitUntil | undefined;
  /** Called for every endpoint that failed. */
  readonly onFailure?: ((error: EndpointError) => void) | undefined;
  /** Called for every request that has ended. */
  readonly onRequest?: ((request: EndedRequest) => void) | undefined;
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
export class Round<A extends Answer = Answer> implements Caller {
  /** One for each endpoint, in the client's order. */
  readonly calls: readonly Call<A>[];
  /** Resolves early: never waits for an endpoint whose answer cannot change it. */
  readonly result: Promise<RoundResult>;
  /** Every call has its answer, or has timed out, or a hasty round is decided. */
  readonly done: Promise<void>;
  /** ms since before the first request was sent. */
  readonly elapsed: () => number;
  readonly context: RoundContext;
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
  /** The reason of the signal. */
  #reason: Error | undefined;

  constructor(context: RoundContext, perform: Perform<A>, options: RoundOptions) {
    const { endpoints, runtime } = context;
    const { timeout = Infinity, isHasty = false } = options;
    this.elapsed = stopwatch(runtime);
    this.context = context;
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
      call.ended = call.start(perform, index);
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

  /**
   * Waits for a round that nothing else keeps alive, but not for slow endpoints: once the round is decided, the others have half
   * as long again, and at least 50 ms in all. Requests under way then go on, as long as the process does. Without a decision
   * every endpoint is waited for.
   */
  async mostlyDone(): Promise<void> {
    if ((await this.result) === "unavailable") return this.done;
    if (this.#missing === 0) return;
    const elapsed = this.elapsed();
    const patience = Math.max(elapsed / 2, leastPatience - elapsed);
    await settledWithin(this.context.runtime, patience, this.done);
  }

  /** The answers so far, as errors report them. */
  votes(): Vote[] {
    return this.calls.map(({ endpoint: { name }, answer }) => {
      const { outcome = "pending", cause } = (answer ?? {}) as Partial<Failure>;
      return cause ? { endpoint: name, outcome, cause } : { endpoint: name, outcome };
    });
  }

  /** The usable answers so far: without the endpoints that failed. */
  answers(): A[] {
    return this.calls.flatMap(({ answer }) => (answer && answer.outcome !== "error" ? [answer as A] : []));
  }

  /** Hears that a call has got its answer. */
  note(answer: A | Failure): void {
    if (answer.outcome === "error") this.context.onFailure?.(answer.cause);
    this.#missing -= 1;
    this.#cancelHaste?.();
    const result = tally(this.calls);
    if (result) this.#decide(result);
    else if (this.#isHasty && this.#isSplit()) {
      // The endpoints that answer last have as long again as the others have taken.
      const patience = Math.max(this.elapsed(), leastPatience);
      this.#cancelHaste = this.context.runtime.timer(patience, () => {
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

  /** The time is over. The endpoints have a turn to report, for example that a command was never sent. */
  #abort(): void {
    const timeout = this.#timeout;
    // A usual mistake: seconds instead of ms.
    const hint = timeout < 50 ? ": raise the ttl or the timeout (in ms)" : "";
    this.#cancelTimeout = this.context.runtime.timer(0, () => this.#expire());
    this.#reason = new Error(`no answer within ${Math.round(timeout)} ms${hint}`);
    this.#controller?.abort(this.#reason);
    for (const listener of this.#listeners ?? []) listener();
  }

  /** Fails the calls that have not answered in time. Not left to the endpoints: one may ignore its signal. */
  #expire(): void {
    for (const call of this.calls) {
      call.settle({ outcome: "error", cause: timeoutError(call.endpoint.name, this.signal) });
    }
  }
}

/** Watches the request of one command, from when it leaves to its end, if somebody hears of requests. */
function watchRequest({ name: endpoint }: Endpoint, { runtime, onRequest }: RoundContext) {
  if (!onRequest) return undefined;
  let commands = 1;
  let sentAt = runtime.monotonic();
  return {
    /** See `Endpoint.send`. */
    onSent(count: number) {
      commands = count;
      sentAt = runtime.monotonic();
    },
    /** Reports the request, unless nothing was sent or another command reports it. */
    end(error?: EndpointError) {
      if (commands === 0 || error?.unsent) return;
      const failure = error && error.kind !== "redis" ? error.kind : undefined;
      onRequest({ endpoint, commands, elapsed: runtime.monotonic() - sentAt, failure });
    },
  };
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
 * For how many ms no later round can be granted, because too many endpoints have asked to be left alone. Infinity: too many
 * failed in a way that lasts.
 */
export function untilUsable(votes: readonly Vote[]): number {
  const pauses = votes.map(({ cause }) => (cause?.permanent ? Infinity : (cause?.retryAfter ?? 0)));
  // The endpoints with the longest pauses are the ones that a quorum can do without.
  return pauses.sort((a, b) => b - a)[votes.length - quorumOf(votes.length)] ?? 0;
}
