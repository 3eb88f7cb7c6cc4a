import type { Ask, RequestWatch } from "../endpoints/ask.ts";
import {
  type Caller,
  type Command,
  type Endpoint,
  sendFor,
  timeoutError,
  unsentError,
} from "../endpoints/endpoint.ts";
import { EndpointError, isEndpointError, type Vote } from "../errors.ts";
import type { Answer } from "./tally.ts";

/** The failure of an endpoint stands in place of its answer. */
export interface Failure {
  readonly outcome: "error";
  readonly cause: EndpointError;
}

/** Makes the request to one endpoint; `index` is its place in the client's order. */
export type Perform<A extends Answer> = (call: Call, index: number) => Promise<A>;

/** What a call needs of its round. */
export interface CallRound<A extends Answer> extends Caller {
  /** Watches a request to an endpoint. Undefined: nobody hears of requests. */
  watch(endpoint: Endpoint): RequestWatch | undefined;
  /** Hears of the answer of each call, once. */
  note(answer: A | Failure): void;
}

/** One request of a round to one endpoint, and what has become of it. */
export class Call<A extends Answer = Answer> implements Ask {
  readonly endpoint: Endpoint;
  /**
   * Its answer, or its failure: a timeout counts as one. Undefined until one of them is known. Once it is known, it never
   * changes.
   */
  answer: A | Failure | undefined = undefined;
  /** What really came of it, once that is known: an answer may come after the timeout. */
  outcome: A | Failure | undefined = undefined;
  /** Resolves with the outcome. Never rejects. */
  ended!: Promise<A | Failure>;
  /** Whether the endpoint may execute it: false if it has said that it was given up before it was sent. */
  isSent = false;
  readonly #round: CallRound<A>;
  #settled: Promise<void> | undefined = undefined;
  #settle: (() => void) | undefined = undefined;

  constructor(endpoint: Endpoint, round: CallRound<A>) {
    this.endpoint = endpoint;
    this.#round = round;
  }

  async send(command: Command): Promise<unknown> {
    const { endpoint } = this;
    const round = this.#round;
    // It would be executed after its undo.
    if (round.hasGivenUp) throw unsentError(endpoint.name);
    const watch = round.watch(endpoint);
    const wasSent = this.isSent;
    this.isSent = true;
    try {
      const reply = await sendFor(endpoint, command, round, watch?.onSent);
      watch?.end();
      return reply;
    } catch (reason) {
      const error = failureOf(endpoint, reason, round);
      if (error.unsent) this.isSent = wasSent;
      watch?.end(error);
      throw error;
    }
  }

  /** Sends a command beside its own, in the same request if it can. It does not matter what becomes of it. */
  async tell(command: Command): Promise<void> {
    const { endpoint } = this;
    const round = this.#round;
    const watch = round.watch(endpoint);
    try {
      await sendFor(endpoint, command, round, watch?.onSent);
      watch?.end();
    } catch (reason) {
      watch?.end(failureOf(endpoint, reason, round));
    }
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

  /** What every endpoint's vote is made of. */
  get vote(): Vote {
    const { answer } = this;
    const { name } = this.endpoint;
    if (answer?.outcome === "error") return { endpoint: name, outcome: "error", cause: answer.cause };
    return { endpoint: name, outcome: (answer as Answer | undefined)?.outcome ?? "pending" };
  }

  /** Whether it cannot be executed any more: it was answered, or given up before it was sent. */
  get isOver(): boolean {
    const known = this.outcome ?? this.answer;
    return known !== undefined && (known.outcome !== "error" || !this.isSent);
  }

  /** Whether it has done nothing, and will not: it was refused, or given up before it was sent. */
  get hasDoneNothing(): boolean {
    return this.isOver && (this.outcome ?? this.answer)!.outcome !== "granted";
  }

  /** @internal Begins it. */
  start(perform: Perform<A>, index: number): void {
    this.ended = this.#run(perform, index);
  }

  /** @internal Takes the first one as its answer: after a timeout the failure stands. */
  settle(answer: A | Failure): void {
    if (this.answer) return;
    this.answer = answer;
    this.#settle?.();
    this.#round.note(answer);
  }

  async #run(perform: Perform<A>, index: number): Promise<A | Failure> {
    let outcome: A | Failure;
    try {
      outcome = await perform(this, index);
    } catch (error) {
      outcome = { outcome: "error", cause: endpointErrorOf(this.endpoint, error) };
    }
    this.outcome = outcome;
    this.settle(outcome);
    return outcome;
  }
}

/** Why a command has no reply. An endpoint that a user has made may reject with the reason of its signal, or however it likes. */
function failureOf(endpoint: Endpoint, reason: unknown, round: Caller): EndpointError {
  if (round.hasGivenUp && !isEndpointError(reason)) return timeoutError(endpoint.name, round.signal);
  return endpointErrorOf(endpoint, reason);
}

function endpointErrorOf({ name }: Endpoint, error: unknown): EndpointError {
  if (isEndpointError(error)) return error;
  // An endpoint that a user has made threw it, or a reply made no sense.
  const reason = error instanceof Error ? error.message : String(error);
  return new EndpointError(name, "malformed", reason, { cause: error });
}
