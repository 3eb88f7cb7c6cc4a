import type { Endpoint } from "../endpoints/endpoint.ts";
import { EndpointError, type Vote } from "../errors.ts";
import type { Call, RequestCost } from "../redis/register.ts";
import { type Runtime, stopwatch } from "../runtime.ts";

// One round: the same question to every endpoint at once, and a result as soon as the answers allow one.

/** One endpoint's usable answer; more specific questions add fields. */
export interface Answer {
  readonly outcome: "granted" | "held" | "lost";
}

/** One endpoint did not answer usably. */
export interface Failure {
  readonly outcome: "error";
  readonly cause: EndpointError;
}

/**
 * `granted`: a quorum did it. `refused`: so many endpoints said no that no quorum is possible. `unavailable`:
 * neither can be shown, because endpoints failed.
 */
export type RoundResult = "granted" | "refused" | "unavailable";

/** What a round is held with. */
export interface RoundContext {
  readonly endpoints: readonly Endpoint[];
  readonly runtime: Runtime;
  /** Hears of every endpoint that failed. */
  readonly onFailure?: ((error: EndpointError) => void) | undefined;
  /** ms that the answers of an endpoint take; 0: the last was not heard in time. Rounds learn it from each other. */
  readonly latency?: Map<Endpoint, number>;
}

/** A round under way. */
export interface Round<Reply extends Answer> {
  /** By endpoint; `undefined` while none is in. */
  readonly answers: readonly (Reply | Failure | undefined)[];
  /** Falls early: never waits for an endpoint whose answer cannot change it. */
  readonly result: Promise<RoundResult>;
  /** Every answer is in or has timed out, or the round was cut short. */
  readonly done: Promise<void>;
  /** By endpoint: what its request really came to, even when that was after its timeout. */
  readonly requests: readonly Promise<Reply | Failure>[];
  readonly cost: RequestCost;
  /** ms since before the first request was sent. */
  elapsed(): number;
  /** The answers so far, as errors report them. */
  votes(): Vote[];
}

/** The smallest number of endpoints of which any two sets share one: ⌊n/2⌋ + 1. */
export function quorumOf(count: number): number {
  return (count >> 1) + 1;
}

/**
 * The result that follows from the answers so far, or `undefined` while they leave it open. A failure waits
 * until it is clear whether it is one of contention or of an outage, and always falls with the last answer.
 */
export function tally(
  granted: number,
  refused: number,
  pending: number,
  count: number,
): RoundResult | undefined {
  const quorum = quorumOf(count);
  const veto = count - quorum + 1;
  if (granted >= quorum) return "granted";
  if (refused >= veto) return "refused";
  return granted + pending < quorum && refused + pending < veto ? "unavailable" : undefined;
}

/** How far apart, in ms, the answers of healthy endpoints may be. */
const minLatency = 50;

/**
 * Asks every endpoint at once; those without an answer after `timeout` ms count as failed. What it costs is
 * added to `cost`.
 *
 * @param cutsShort with a grant and a refusal in, wait for the others only half as long again as their answers usually
 * take, and not for one that was not heard the last time. A contender that waits for a silent endpoint keeps what it has
 * been granted from others, which wait for it, too.
 */
export function runRound<Reply extends Answer>(
  { endpoints, runtime, onFailure, latency = new Map() }: RoundContext,
  timeout: number,
  perform: (call: Call) => Promise<Reply>,
  cost: RequestCost = { requests: 0, commands: 0 },
  cutsShort = false,
): Round<Reply> {
  const count = endpoints.length;
  const elapsed = stopwatch(runtime);
  const controller = new AbortController();
  const answers: (Reply | Failure | undefined)[] = new Array(count).fill(undefined);
  let granted = 0;
  let refused = 0;
  let pending = count;
  let cancelCut: (() => void) | undefined;
  let decide!: (result: RoundResult) => void;
  let finish!: () => void;
  const result = new Promise<RoundResult>((resolve) => {
    decide = resolve;
  });
  const done = new Promise<void>((resolve) => {
    finish = resolve;
  });

  function note(index: number, answer: Reply | Failure): Reply | Failure {
    if (answers[index]) return answer; // it had timed out
    answers[index] = answer;
    pending -= 1;
    if (answer.outcome === "granted") granted += 1;
    else if (answer.outcome !== "error") refused += 1;
    else onFailure?.(answer.cause);
    if (answer.outcome !== "error") learn(endpoints[index]!);
    const reached = tally(granted, refused, pending, count);
    cancelCut?.();
    if (reached) decide(reached);
    else if (cutsShort && refused > 0 && granted > 0)
      cancelCut = runtime.timer(Math.max(0, longestWait() - elapsed()), cut);
    if (pending === 0) {
      cancelTimer();
      finish();
    }
    return answer;
  }

  function learn(endpoint: Endpoint): void {
    const took = elapsed();
    // No answer takes longer: a clock has jumped.
    if (took > timeout) return;
    // A single late answer is forgotten after a few rounds.
    latency.set(endpoint, Math.max(1, took, 0.9 * (latency.get(endpoint) ?? 0)));
  }

  /** ms from the beginning for which those that are pending are worth waiting for. */
  function longestWait(): number {
    // What is unknown is taken to be as far as the slowest that is known.
    const slowest = Math.max(1, ...latency.values());
    const usual = endpoints.map((endpoint, index) =>
      answers[index] ? 0 : (latency.get(endpoint) ?? slowest),
    );
    const longest = Math.max(...usual);
    return longest && Math.min(timeout, Math.max(minLatency, 1.5 * longest));
  }

  /** Ends the wait. The requests go on: only their answers tell what a rollback must take back, and when. */
  function cut(): void {
    cutsShort = false;
    notHeard();
    decide("unavailable");
    finish();
  }

  function notHeard(): void {
    endpoints.forEach((endpoint, index) => {
      if (!answers[index]) latency.set(endpoint, 0);
    });
  }

  function expire(): void {
    controller.abort();
    notHeard();
    // Not left to the endpoints: one that ignores its signal must not hold up the round.
    endpoints.forEach(({ name }, index) => {
      const why = `no answer within ${Math.round(timeout)} ms`;
      if (!answers[index]) note(index, failure(new EndpointError(name, "timeout", why)));
    });
  }
  if (count === 0) finish();
  const cancelTimer = runtime.timer(timeout, expire);

  const requests = endpoints.map(async (endpoint, index) => {
    try {
      return note(index, await perform({ endpoint, signal: controller.signal, cost }));
    } catch (error) {
      return note(index, failure(asEndpointError(endpoint, error)));
    }
  });

  return {
    answers,
    result,
    done,
    requests,
    cost,
    elapsed,
    votes: () =>
      endpoints.map(({ name }, index) => {
        const answer: Answer | Failure | undefined = answers[index];
        if (answer?.outcome === "error") return { endpoint: name, ...answer };
        return { endpoint: name, outcome: answer?.outcome ?? "pending" };
      }),
  };
}

/**
 * The result, or undefined as soon as `signal` aborts. The requests go on, so that their answers are heard: a take
 * that is executed after its rollback would stand until its ttl.
 */
export function unlessAborted(
  round: Round<Answer>,
  signal: AbortSignal | undefined,
): Promise<RoundResult | undefined> {
  if (!signal) return round.result;
  return new Promise((resolve) => {
    const giveUp = () => resolve(undefined);
    if (signal.aborted) return giveUp();
    signal.addEventListener("abort", giveUp, { once: true });
    void round.result.then((result) => {
      signal.removeEventListener("abort", giveUp);
      resolve(result);
    });
  });
}

function failure(cause: EndpointError): Failure {
  return { outcome: "error", cause };
}

function asEndpointError({ name }: Endpoint, error: unknown): EndpointError {
  if (error instanceof EndpointError) return error;
  // Of an endpoint of the user's own making, or a reply that made no sense.
  const reason = error instanceof Error ? error.message : String(error);
  return new EndpointError(name, "malformed", reason, { cause: error });
}
