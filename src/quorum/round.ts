import { CallSignal } from "../endpoints/call-signal.ts";
import type { Endpoint } from "../endpoints/endpoint.ts";
import { type EndpointCall, newCall, type RequestCost } from "../endpoints/endpoint-call.ts";
import { unsentReason } from "../endpoints/transport.ts";
import { EndpointError, type Vote } from "../errors.ts";
import { type Runtime, stopwatch } from "../runtime.ts";
import { type Latencies, recordLatency, usefulWait } from "./latency.ts";
import { type Answer, isVeto, type RoundResult, tally } from "./tally.ts";

// One round: the same request to every endpoint at once, and a result as soon as the answers allow one.

/** What stands for an endpoint's answer where it did not answer usably. */
export interface Failure {
  readonly outcome: "error";
  readonly cause: EndpointError;
  /** Which of its commands were not sent in time. All: there is nothing to roll back. Default: none. */
  readonly unsent?: "all" | "some";
}

/** What every round of a client uses. */
export interface RoundContext {
  readonly endpoints: readonly Endpoint[];
  readonly runtime: Runtime;
  /** An endpoint without an answer after so many ms counts as failed. */
  readonly timeout: number;
  /** Called for every endpoint that failed. */
  readonly onFailure?: ((error: EndpointError) => void) | undefined;
  /** Shared by the rounds of a client. Default: this round learns nothing from others. */
  readonly latencies?: Latencies;
}

/** What belongs to one round only. */
export interface RoundOptions {
  /** The requests of this round are added to it. Default: a count of its own. */
  readonly cost?: RequestCost;
  /** An endpoint has at most so many ms to answer. Default: the context's timeout. */
  readonly timeout?: number;
  /**
   * Whether an undecided round with grants and refusals ends early: the rest have half as long again as they usually take,
   * and no time where they were silent in their last round. A longer wait would block other contenders with the grants.
   * Default false.
   */
  readonly cutsShort?: boolean;
  /** Whether its commands wait until those that free or extend are sent. For what can be tried again. Default false. */
  readonly yields?: boolean;
}

/** A round under way. */
export interface Round<Reply extends Answer> {
  /**
   * By endpoint; `undefined` while its answer is missing. One that has timed out keeps that failure; of a round that was
   * cut short, answers still come.
   */
  readonly answers: readonly (Reply | Failure | undefined)[];
  /** Resolves early: never waits for an endpoint whose answer cannot change it. */
  readonly result: Promise<RoundResult>;
  /** Every answer has arrived or has timed out, or the round was cut short. */
  readonly done: Promise<void>;
  /**
   * By endpoint: its answer, even where that arrives after the timeout: where the endpoint could not cancel the request, or
   * others share it. Else its failure. Never rejects.
   */
  readonly eventualAnswers: readonly Promise<Reply | Failure>[];
  readonly cost: RequestCost;
  /** ms since before the first request was sent. */
  elapsed(): number;
  /** The answers so far, as errors report them. */
  votes(): Vote[];
}

/** Sends `perform`'s request to every endpoint at once. */
export function runRound<Reply extends Answer>(
  context: RoundContext,
  perform: (call: EndpointCall) => Promise<Reply>,
  options: RoundOptions = {},
): Round<Reply> {
  return new PendingRound(context, perform, options);
}

class PendingRound<Reply extends Answer> implements Round<Reply> {
  readonly answers: (Reply | Failure | undefined)[];
  readonly result: Promise<RoundResult>;
  readonly done: Promise<void>;
  readonly eventualAnswers: readonly Promise<Reply | Failure>[];
  readonly cost: RequestCost;
  readonly elapsed: () => number;
  readonly #context: RoundContext;
  readonly #timeout: number;
  readonly #signal: CallSignal;
  readonly #calls: readonly EndpointCall[];
  #cancelTimeout: () => void;
  #isOverdue = false;
  #cancelCut: (() => void) | undefined;
  #cutsShort: boolean;
  #decide!: (result: RoundResult) => void;
  #finish!: () => void;

  constructor(
    context: RoundContext,
    perform: (call: EndpointCall) => Promise<Reply>,
    {
      cost = { requests: 0, commands: 0 },
      cutsShort = false,
      yields = false,
      timeout = Infinity,
    }: RoundOptions,
  ) {
    const { endpoints, runtime } = context;
    this.elapsed = stopwatch(runtime);
    this.#context = context;
    this.#timeout = Math.min(timeout, context.timeout);
    this.#signal = new CallSignal({ timeout: this.#timeout, now: () => runtime.monotonic(), yields });
    this.#cutsShort = cutsShort;
    this.cost = cost;
    this.answers = new Array(endpoints.length).fill(undefined);
    this.result = new Promise((resolve) => {
      this.#decide = resolve;
    });
    this.done = new Promise((resolve) => {
      this.#finish = resolve;
    });
    if (endpoints.length === 0) this.#finish();
    this.#cancelTimeout = runtime.timer(this.#timeout, () => this.#expire());
    this.#calls = endpoints.map((endpoint) => newCall(endpoint, this.#signal, cost));
    this.eventualAnswers = this.#calls.map(async (call, index) => {
      try {
        return this.#note(index, await perform(call));
      } catch (error) {
        const cause = asEndpointError(call.endpoint, error);
        return this.#note(index, failureOf(call, cause));
      }
    });
  }

  votes(): Vote[] {
    return this.#context.endpoints.map(({ name }, index) => {
      const answer: Answer | Failure | undefined = this.answers[index];
      if (answer?.outcome === "error") return { endpoint: name, outcome: "error", cause: answer.cause };
      return { endpoint: name, outcome: answer?.outcome ?? "pending" };
    });
  }

  #note(index: number, answer: Reply | Failure): Reply | Failure {
    // It has timed out: the failure stands, and only `eventualAnswers` has the late answer.
    if (this.answers[index]) return answer;
    this.answers[index] = answer;
    if (answer.outcome === "error") this.#context.onFailure?.(answer.cause);
    else this.#learn(index);
    this.#conclude();
    return answer;
  }

  #learn(index: number): void {
    const { latencies, endpoints } = this.#context;
    if (!latencies) return;
    const took = this.elapsed();
    // After more than the timeout, a clock has jumped.
    if (took <= this.#timeout) recordLatency(latencies, endpoints[index]!, took);
  }

  /** Decides, where the answers so far allow it. */
  #conclude(): void {
    const { runtime, latencies } = this.#context;
    const result = tally(this.answers);
    this.#cancelCut?.();
    if (result) this.#decide(result);
    else if (this.#cutsShort && this.#isSplit()) {
      const wait = Math.min(this.#timeout, usefulWait(latencies, this.#silent()));
      this.#cancelCut = runtime.timer(Math.max(0, wait - this.elapsed()), () => this.#cut());
    }
    if (!this.answers.includes(undefined)) {
      this.#cancelTimeout();
      this.#finish();
    }
  }

  /** Whether some have granted, and others refused. */
  #isSplit(): boolean {
    const outcomes: unknown[] = this.answers.map((answer) => answer?.outcome);
    return outcomes.includes("granted") && (outcomes.includes("held") || outcomes.includes("lost"));
  }

  /** Ends the wait. The requests go on: their answers show what to roll back, and when. */
  #cut(): void {
    this.#cutsShort = false;
    for (const endpoint of this.#silent()) this.#context.latencies?.set(endpoint, 0);
    this.#decide("unavailable");
    this.#finish();
  }

  /** Fails what has not answered in time. Not left to the endpoints: one may ignore its signal. */
  #expire(): void {
    const timeout = this.#timeout;
    if (!this.#isOverdue) {
      // First a grace. The process may have been busy or frozen, with answers that it has received and not yet read.
      this.#isOverdue = true;
      const late = Math.max(0, this.elapsed() - timeout);
      this.#cancelTimeout = this.#context.runtime.timer(Math.min(late, timeout / 4), () => this.#expire());
      return;
    }
    this.#signal.abort();
    // A usual mistake: seconds instead of ms.
    const hint = timeout < 50 ? ": raise the ttl or the timeout (in ms)" : "";
    this.#calls.forEach((call, index) => {
      const { endpoint, mayBeExecuted } = call;
      if (this.answers[index]) return;
      const isUnsent = mayBeExecuted === 0;
      if (!isUnsent) this.#context.latencies?.set(endpoint, 0);
      const why = isUnsent ? unsentReason(endpoint) : `no answer within ${Math.round(timeout)} ms${hint}`;
      const cause = new EndpointError(endpoint.name, "timeout", why);
      this.#note(index, failureOf(call, cause));
    });
  }

  #silent(): Endpoint[] {
    return this.#context.endpoints.filter((_, index) => !this.answers[index]);
  }
}

/** Whether no later round can be granted, because too many endpoints failed in a way that lasts. */
export function isHopeless(votes: readonly Vote[]): boolean {
  return isVeto(votes.filter(({ cause }) => cause?.permanent).length, votes.length);
}

function failureOf({ signal, mayBeExecuted, waiting }: EndpointCall, cause: EndpointError): Failure {
  const failure = { outcome: "error", cause } as const;
  // A failure before the timeout was not for want of room: sent again, it would fail again at once.
  if (!signal.aborted) return failure;
  if (mayBeExecuted === 0) return { ...failure, unsent: "all" };
  return waiting ? { ...failure, unsent: "some" } : failure;
}

function asEndpointError({ name }: Endpoint, error: unknown): EndpointError {
  if (error instanceof EndpointError) return error;
  // Thrown by an endpoint that a user has made, or because a reply made no sense.
  const reason = error instanceof Error ? error.message : String(error);
  return new EndpointError(name, "malformed", reason, { cause: error });
}
