import type { Endpoint } from "../endpoints/endpoint.ts";
import type { EndpointRequest, RequestCost } from "../endpoints/endpoint-request.ts";
import type { EndpointError } from "../errors.ts";
import type { Settings } from "../lock/options.ts";
import { mostlyDone } from "../quorum/mostly-done.ts";
import { retry } from "../quorum/retry.ts";
import { type Round, runRound } from "../quorum/round.ts";
import { type Answer, quorumOf, type RoundResult } from "../quorum/tally.ts";
import { type CellAnswer, claimOrRead, keep } from "../redis/cell.ts";
import { runInBackground, sleep, stopwatch } from "../runtime.ts";
import type { ClaimOperations } from "./claim.ts";
import type { CompleteRecord, UnstoredReason } from "./record.ts";
import { recordOfResult } from "./result.ts";

/** What storing the result of a run needs. */
export interface CompletionRequest {
  readonly settings: Settings;
  readonly operations: ClaimOperations;
  readonly token: string;
  readonly startedAt: number;
  readonly fingerprint: string;
  readonly retention: number;
  readonly maxResult: number;
  readonly cost: RequestCost;
}

/** What is stored: the encoded result, or why there is none. */
type Result = Pick<CompleteRecord, "result" | "unstored">;

/** Whether a result is stored. */
export interface CompletionResult {
  /** `refused`: another run took over. */
  readonly roundResult: RoundResult;
  /** Why the record has no result, where it has none. */
  readonly unstored: UnstoredReason | undefined;
}

/** What {@link completeOne} writes. */
interface CompleteText {
  /** The complete record. */
  readonly text: string;
  readonly retention: number;
  /** The record that this run tried to store before: it may be stored here, but not on a quorum. */
  readonly former?: string | undefined;
}

/**
 * Completes a run on one endpoint. A record that has expired is completed too, as long as nobody else has begun: the
 * effect has happened. Another run's record is never changed.
 */
export async function completeOne(
  call: EndpointRequest,
  operations: ClaimOperations,
  { text, retention, former }: CompleteText,
): Promise<CellAnswer> {
  const { own } = operations;
  const completed = await operations.complete(call, text, retention);
  if (completed.outcome === "granted") return completed;
  const taken = await claimOrRead(call, { ...own, value: text }, retention);
  // A late begin of this run was executed between the two requests.
  if (taken.other === own.value) return operations.complete(call, text, retention);
  if (former !== undefined && taken.other === former) {
    return keep(call, { ...own, value: former }, retention, { next: text });
  }
  return taken;
}

/**
 * Stores a result, and tries again for `lease` ms when no quorum answers: the time that remains since the lease was
 * renewed. Resolves when a quorum has decided, or when the retries go on in the background.
 */
export function complete(
  request: CompletionRequest,
  result: Result,
  lease: number,
): Promise<CompletionResult> {
  return new Completion(request, result).run(lease);
}

/** The rounds that store one result. */
class Completion {
  readonly #request: CompletionRequest;
  readonly #elapsed: () => number;
  readonly #head: Parameters<typeof recordOfResult>[0];
  #record: ReturnType<typeof recordOfResult>;
  /** The record with the result, once a quorum can no longer store it for its size. */
  #former: string | undefined;
  /** Endpoints that refused the result for its size: they would do so again. */
  readonly #sizeRefusals = new Map<Endpoint, EndpointError>();

  constructor(request: CompletionRequest, result: Result) {
    const { settings, token, fingerprint, startedAt, maxResult } = request;
    this.#request = request;
    this.#elapsed = stopwatch(settings.runtime);
    const completedAt = Math.max(Math.floor(settings.runtime.now()), startedAt);
    this.#head = { token, fingerprint, completedAt };
    this.#record = recordOfResult(this.#head, result, maxResult);
  }

  async run(lease: number): Promise<CompletionResult> {
    const { settings } = this.#request;
    const first = await this.#store();
    if (first.roundResult !== "unavailable") return first;
    // An error of the user's backoff ends the retries, not the call: its effect has happened.
    const retries = this.#retry(first, lease).catch(() => first);
    if (runInBackground(settings, retries)) return first;
    const ended = new AbortController();
    const limit = sleep(settings.runtime, settleTimeout(settings), ended.signal).then(() => first);
    const last = await Promise.race([retries, limit]);
    // The timer would keep the process alive.
    ended.abort();
    return last;
  }

  #retry(first: CompletionResult, lease: number): Promise<CompletionResult> {
    const { backoff, runtime } = this.#request.settings;
    let known: CompletionResult | undefined = first;
    return retry<CompletionResult>({ backoff, runtime, wait: lease - this.#elapsed() }, async () => {
      const last = known ?? (await this.#store());
      known = undefined;
      return last.roundResult === "unavailable" ? { mayRetry: true, end: () => last } : { value: last };
    });
  }

  /** Runs one round, and a second one without the result where it is too large for a quorum of the endpoints. */
  async #store(): Promise<CompletionResult> {
    const { settings, maxResult } = this.#request;
    const { text, unstored } = this.#record;
    const round = this.#runRound();
    // Also of those that answer after the decision: the next round must not send them the result again.
    const noted = round.done.then(() => this.#noteSizeRefusals(round));
    const roundResult = await round.result;
    // The part of a refused result that a minority has stored stays: another call may have brought it to a quorum.
    const isKeptAlive = runInBackground(settings, round.done);
    this.#noteSizeRefusals(round);
    if (!isKeptAlive) await mostlyDone(settings, round);
    // Where some refuse the result for its size, those that answer after the decision may do so as well.
    if (roundResult === "unavailable" && this.#sizeRefusals.size > 0) await noted;
    const { length: count } = settings.endpoints;
    const isTooLarge = this.#sizeRefusals.size > count - quorumOf(count);
    if (roundResult !== "unavailable" || unstored || !isTooLarge) return { roundResult, unstored };
    // No retry can fix that, and without a record the effect would be repeated when the lease ends.
    this.#former = text;
    this.#record = recordOfResult(this.#head, { unstored: "too-large" }, maxResult);
    return this.#store();
  }

  #noteSizeRefusals({ answers }: Round<Answer>): void {
    for (const [index, endpoint] of this.#request.settings.endpoints.entries()) {
      const answer = answers[index];
      if (answer?.outcome === "error" && isSizeError(answer.cause)) {
        this.#sizeRefusals.set(endpoint, answer.cause);
      }
    }
  }

  #runRound(): Round<Answer> {
    const { settings, operations, retention, cost } = this.#request;
    const { text, unstored } = this.#record;
    const former = this.#former;
    const storeOne = async (call: EndpointRequest): Promise<Answer> => {
      const refusal = unstored ? undefined : this.#sizeRefusals.get(call.endpoint);
      if (refusal) throw refusal;
      return completeOne(call, operations, { text, retention, former });
    };
    return runRound(settings, storeOne, { cost });
  }
}

/**
 * The longest time in ms to wait for a split vote to end, or for a result to reach its quorum. In a whole lease, the sender
 * of a webhook would give up.
 */
export function settleTimeout({ timeout, wait }: Settings): number {
  return Math.max(wait, 2 * timeout);
}

/** Upstash answers "max request size exceeded", Redis "exceeds maximum allowed size", a gateway 413. */
function isSizeError({ status, message }: EndpointError): boolean {
  return status === 413 || /\bmax(imum)?\b.*\bsize\b/i.test(message);
}
