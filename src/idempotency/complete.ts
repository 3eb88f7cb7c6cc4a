import type { Ask } from "../endpoints/ask.ts";
import type { Endpoint } from "../endpoints/endpoint.ts";
import type { EndpointError } from "../errors.ts";
import type { Settings } from "../lock/options.ts";
import { retry } from "../quorum/retry.ts";
import { runRound } from "../quorum/round.ts";
import { type Answer, isVeto, type RoundResult } from "../quorum/tally.ts";
import { type CellAnswer, claimOrRead, keep } from "../redis/cell.ts";
import { keepAlive, settledWithin, stopwatch } from "../runtime.ts";
import type { ClaimOperations, RunClaim } from "./claim.ts";
import type { CompleteRecord, UnstoredReason } from "./record.ts";
import { recordOfResult } from "./result.ts";
import type { RunRequest } from "./run-request.ts";

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
  call: Ask,
  operations: ClaimOperations,
  { text, retention, former }: CompleteText,
): Promise<CellAnswer> {
  const { own } = operations;
  const completed = await operations.complete(call, text, retention);
  if (completed.outcome === "granted") return completed;
  const taken = await claimOrRead(call, { ...own, values: [text] }, retention);
  // A late begin of this run was executed between the two requests.
  if (taken.other === own.value) return operations.complete(call, text, retention);
  if (former !== undefined && taken.other === former) {
    return keep(call, { ...own, value: former }, retention, text);
  }
  return taken;
}

/**
 * Stores a result, and tries again for `lease` ms when no quorum answers: the time that remains since the lease was
 * renewed. Resolves when a quorum has decided, or when the retries go on in the background.
 */
export async function complete(
  request: RunRequest<unknown>,
  claim: RunClaim,
  result: Result,
  lease: number,
): Promise<CompletionResult> {
  const { settings } = request;
  const { backoff, runtime } = settings;
  const elapsed = stopwatch(runtime);
  const store = storing(request, claim, result);
  let last = await store();
  if (last.roundResult !== "unavailable") return last;
  let isFirst = true;
  const retries = retry<void>({ backoff, runtime, wait: lease - elapsed() }, {}, async () => {
    if (!isFirst) last = await store();
    isFirst = false;
    return last.roundResult === "unavailable"
      ? { next: "pause", end: () => undefined }
      : { value: undefined };
    // An error of the user's backoff ends the retries, not the call: its effect has happened.
  }).catch(() => undefined);
  if (!keepAlive(settings, retries)) await settledWithin(runtime, settleTimeout(settings), retries);
  return last;
}

/**
 * A function that runs one round to store a result, and from then on without the result where it is too large for a quorum
 * of the endpoints: no retry can fix that, and without a record the effect would be repeated when the lease ends.
 */
function storing(
  { settings, fingerprint, retention, maxResult }: RunRequest<unknown>,
  { operations, token, startedAt }: RunClaim,
  result: Result,
): () => Promise<CompletionResult> {
  const completedAt = Math.max(Math.floor(settings.runtime.now()), startedAt);
  const head = { token, fingerprint, completedAt };
  let record = recordOfResult(head, result, maxResult);
  let former: string | undefined;
  /** The errors of endpoints that refused the result for its size: they would do so again. */
  const refusals = new Map<Endpoint, unknown>();
  return async function store(): Promise<CompletionResult> {
    const { text, unstored } = record;
    const storeOne = async (call: Ask): Promise<Answer> => {
      if (!unstored && refusals.has(call.endpoint)) throw refusals.get(call.endpoint);
      try {
        return await completeOne(call, operations, { text, retention, former });
      } catch (error) {
        if (isSizeError(error)) refusals.set(call.endpoint, error);
        throw error;
      }
    };
    const round = runRound(settings, storeOne);
    const roundResult = await round.result;
    // The part of a refused result that a minority has stored stays: another call may have brought it to a quorum.
    const isKeptAlive = keepAlive(settings, round.done);
    if (!isKeptAlive) await round.mostlyDone();
    if (roundResult !== "unavailable" || unstored) return { roundResult, unstored };
    // Where some refuse the result for its size, those that answer after the decision may do so as well.
    if (refusals.size > 0) await round.done;
    if (!isVeto(refusals.size, settings.endpoints.length)) return { roundResult, unstored };
    former = text;
    record = recordOfResult(head, { unstored: "too-large" }, maxResult);
    return store();
  };
}

/**
 * The longest time in ms to wait for a split vote to end, or for a result to reach its quorum. In a whole lease, the sender
 * of a webhook would give up.
 */
export function settleTimeout({ timeout, wait }: Settings): number {
  return Math.max(wait, 2 * timeout);
}

/** Upstash answers "max request size exceeded", Redis "exceeds maximum allowed size", a gateway 413. */
function isSizeError(error: unknown): boolean {
  const { status, message } = error as Partial<EndpointError>;
  return status === 413 || /\bmax(imum)?\b.*\bsize\b/i.test(String(message));
}
