import type { Ask, EndedRequest } from "../endpoints/ask.ts";
import {
  type Caller,
  type Command,
  type Endpoint,
  sendFor,
  timeoutError,
  unsentError,
} from "../endpoints/endpoint.ts";
import { EndpointError, isEndpointError, reasonOf, type Vote } from "../errors/errors.ts";
import { type Runtime, settledWithin, stopwatch, type WaitUntil } from "../runtime/runtime.ts";
import { type Answer, quorumOf, type RoundResult, tally } from "./tally.ts";

// A round: one request to every endpoint at once, and a result as soon as the answers allow one.

export interface Failure {
  readonly outcome: "error";
  readonly cause: EndpointError;
}

export type Perform<A extends Answer> = (call: Call, index: number) => Promise<A>;

export class Call<A extends Answer = Answer> implements Ask {
  readonly endpoint: Endpoint;
  /** Never changes: an answer after the timeout does not count. */
  answer: A | Failure | undefined = undefined;
  /** Its real end, even after the timeout. Never rejects. */
  ended!: Promise<A | Failure>;
  isSent = false;
  readonly #round: Round<A>;
  #outcome: A | Failure | undefined = undefined;
  #settled: Promise<void> | undefined = undefined;
  #settle: (() => void) | undefined = undefined;

  constructor(endpoint: Endpoint, round: Round<A>) {
    this.endpoint = endpoint;
    this.#round = round;
  }

  get settled(): Promise<void> {
    this.#settled ??= new Promise((resolve) => {
      if (this.answer) resolve();
      else this.#settle = resolve;
    });
    return this.#settled;
  }

  /** It was answered, or never sent. */
  get isOver(): boolean {
    const known = this.#outcome ?? this.answer;
    return known !== undefined && (known.outcome !== "error" || !this.isSent);
  }

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

  /** Its outcome does not matter. */
  tell(command: Command): void {
    this.#request(command).catch(() => undefined);
  }

  /** @internal */
  async start(perform: Perform<A>, index: number): Promise<A | Failure> {
    try {
      this.#outcome = await perform(this, index);
    } catch (error) {
      this.#outcome = { outcome: "error", cause: this.#errorOf(error) };
    }
    this.settle(this.#outcome);
    return this.#outcome;
  }

  /** @internal */
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
      // A user's endpoint may reject with the reason of its signal.
      const isTimeout = round.hasGivenUp && !isEndpointError(reason);
      const error = isTimeout ? timeoutError(endpoint.name, round.signal) : this.#errorOf(reason);
      watch?.end(error);
      throw error;
    }
  }

  #errorOf(error: unknown): EndpointError {
    if (isEndpointError(error)) return error;
    return new EndpointError(this.endpoint.name, "malformed", reasonOf(error), { cause: error });
  }
}

export interface RoundContext {
  readonly endpoints: readonly Endpoint[];
  readonly runtime: Runtime;
  readonly timeout: number;
  /** Default: the call waits, but not for repetitions. */
  readonly waitUntil?: WaitUntil | undefined;
  readonly onFailure?: ((error: EndpointError) => void) | undefined;
  readonly onRequest?: ((request: EndedRequest) => void) | undefined;
}

export interface RoundOptions {
  readonly timeout?: number;
  /** Contenders must not keep their parts from each other until a silent endpoint times out. */
  readonly isHasty?: boolean;
}

/** ms for the slowest endpoints. */
export const leastPatience = 50;

export class Round<A extends Answer = Answer> implements Caller {
  readonly calls: readonly Call<A>[];
  readonly result: Promise<RoundResult>;
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
  #listeners: Set<() => void> | undefined;
  #controller: AbortController | undefined;
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
    // One turn later, because a busy process may have received answers that it has not yet read.
    this.#cancelTimeout = runtime.timer(this.#timeout, () => {
      this.#cancelTimeout = runtime.timer(0, () => this.#abort());
    });
    this.calls = endpoints.map((endpoint) => new Call(endpoint, this));
    // Now, because a call that fails at once looks at all of them.
    this.calls.forEach((call, index) => {
      call.ended = call.start(perform, index);
    });
  }

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
   * Without `waitUntil`: slow endpoints have half as long again, and at least 50 ms in all. An undecided round waits
   * for all.
   */
  async mostlyDone(): Promise<void> {
    if ((await this.result) === "unavailable") return this.done;
    if (this.#missing === 0) return;
    const elapsed = this.elapsed();
    const patience = Math.max(elapsed / 2, leastPatience - elapsed);
    await settledWithin(this.context.runtime, patience, this.done);
  }

  votes(): Vote[] {
    return this.calls.map(({ endpoint: { name }, answer }) => {
      const { outcome = "pending", cause } = (answer ?? {}) as Partial<Failure>;
      return cause ? { endpoint: name, outcome, cause } : { endpoint: name, outcome };
    });
  }

  answers(): A[] {
    return this.calls.flatMap(({ answer }) => (answer && answer.outcome !== "error" ? [answer as A] : []));
  }

  note(answer: A | Failure): void {
    if (answer.outcome === "error") this.context.onFailure?.(answer.cause);
    this.#missing -= 1;
    this.#cancelHaste?.();
    const result = tally(this.calls);
    if (result) this.#decide(result);
    else if (this.#isHasty && this.#isSplit()) {
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

  #isSplit(): boolean {
    const outcomes: unknown[] = this.calls.map(({ answer }) => answer?.outcome);
    return outcomes.includes("granted") && (outcomes.includes("held") || outcomes.includes("lost"));
  }

  /** A turn for the endpoints to report, for example, that a command was never sent. */
  #abort(): void {
    const timeout = this.#timeout;
    // A frequent mistake is seconds instead of ms.
    const hint = timeout < 50 ? ": raise the ttl or the timeout (in ms)" : "";
    this.#cancelTimeout = this.context.runtime.timer(0, () => this.#expire());
    this.#reason = new Error(`no answer within ${Math.round(timeout)} ms${hint}`);
    this.#controller?.abort(this.#reason);
    for (const listener of this.#listeners ?? []) listener();
  }

  /** Not left to the endpoints, which may ignore the signal. */
  #expire(): void {
    for (const call of this.calls) {
      call.settle({ outcome: "error", cause: timeoutError(call.endpoint.name, this.signal) });
    }
  }
}

function watchRequest({ name: endpoint }: Endpoint, { runtime, onRequest }: RoundContext) {
  if (!onRequest) return undefined;
  let commands = 1;
  let sentAt = runtime.monotonic();
  return {
    onSent(count: number) {
      commands = count;
      sentAt = runtime.monotonic();
    },
    end(error?: EndpointError) {
      if (commands === 0 || error?.unsent) return;
      const failure = error && error.kind !== "redis" ? error.kind : undefined;
      onRequest({ endpoint, commands, elapsed: runtime.monotonic() - sentAt, failure });
    },
  };
}

export function runRound<A extends Answer>(
  context: RoundContext,
  perform: Perform<A>,
  options: RoundOptions = {},
): Round<A> {
  return new Round(context, perform, options);
}

/** ms until a quorum is usable. Infinity: too many failures are permanent. */
export function untilUsable(votes: readonly Vote[]): number {
  const pauses = votes.map(({ cause }) => (cause?.permanent ? Infinity : (cause?.retryAfter ?? 0)));
  // A quorum needs none of those with the longest pauses.
  return pauses.sort((a, b) => b - a)[votes.length - quorumOf(votes.length)] ?? 0;
}
