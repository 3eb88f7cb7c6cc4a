import type { RequestCost } from "../endpoints/call.ts";
import type { Endpoint } from "../endpoints/endpoint.ts";
import type { EndpointError } from "../errors.ts";
import type { Settings } from "../lock/options.ts";
import { pauses } from "../quorum/backoff.ts";
import { runRound } from "../quorum/round.ts";
import { quorumOf, type RoundResult } from "../quorum/tally.ts";
import type { Register } from "../redis/register.ts";
import { sleep, stopwatch } from "../runtime.ts";
import { runInBackground } from "../wait-until.ts";
import type { UnstoredReason } from "./record.ts";
import { recordOfResult, type StoredResult } from "./result.ts";
import { completeOne } from "./store.ts";

/** What storing the result of a run needs. */
export interface Completion {
  readonly settings: Settings;
  /** The record's key, with this run's pending record. */
  readonly own: Register;
  readonly token: string;
  readonly startedAt: number;
  readonly fingerprint: string;
  readonly retention: number;
  readonly maxResult: number;
  readonly cost: RequestCost;
}

/** What storing a result came to. */
export interface Completed {
  /** `refused`: another run took over. */
  readonly roundResult: RoundResult;
  /** Why the record has no result, where it has none. */
  readonly unstored: UnstoredReason | undefined;
}

/**
 * Stores a result and goes on trying when no quorum answers, for `lease` ms: what is left since the lease was
 * renewed. Resolves when that is decided, or goes on in the background.
 */
export async function complete(run: Completion, result: StoredResult, lease: number): Promise<Completed> {
  const { settings, cost, retention, own } = run;
  const { runtime, timeout } = settings;
  const elapsed = stopwatch(runtime);
  const completedAt = Math.max(Math.floor(runtime.now()), run.startedAt);
  const head = { token: run.token, fingerprint: run.fingerprint, completedAt };
  let record = recordOfResult(head, result, run.maxResult);
  let refused: string | undefined;
  /** Endpoints that refused the result for its size: they would do so again. */
  const tooSmall = new Map<Endpoint, EndpointError>();
  const attempt = async (): Promise<Completed> => {
    const { text, unstored } = record;
    const write = runRound(
      settings,
      async (call) => {
        const cause = unstored ? undefined : tooSmall.get(call.endpoint);
        if (cause) throw cause;
        return completeOne(call, own, text, retention, refused);
      },
      { cost },
    );
    const roundResult = await write.result;
    // What a minority took of a refused result stays: somebody may have brought it to a quorum meanwhile.
    if (!runInBackground(settings, write.done)) await write.done;
    settings.endpoints.forEach((endpoint, index) => {
      const answer = write.answers[index];
      if (answer?.outcome === "error" && isSizeError(answer.cause)) tooSmall.set(endpoint, answer.cause);
    });
    const { length: count } = settings.endpoints;
    const isTooLarge = tooSmall.size > count - quorumOf(count);
    if (roundResult !== "unavailable" || unstored || !isTooLarge) return { roundResult, unstored };
    // No retry mends that, and without a record the effect would be repeated when the lease ends.
    refused = text;
    record = recordOfResult(head, { unstored: "too-large" }, run.maxResult);
    return attempt();
  };
  const first = await attempt();
  if (first.roundResult !== "unavailable") return first;
  const retry = async (): Promise<Completed> => {
    const next = pauses(settings.backoff, runtime);
    for (let last = first; ; last = await attempt()) {
      if (last.roundResult !== "unavailable" || elapsed() >= lease) return last;
      await sleep(runtime, next());
    }
  };
  // A backoff of the user's that throws ends the retries, not the call: its effect has happened.
  const retries = retry().catch(() => first);
  if (runInBackground(settings, retries)) return first;
  return Promise.race([retries, sleep(runtime, settleTimeout(settings)).then(() => first)]);
}

/** How long contenders may go on parting a key among themselves, or a result wait for its quorum, in ms. */
export function settleTimeout({ timeout, wait }: Settings): number {
  return Math.max(wait, 2 * timeout);
}

/** Upstash says "max request size exceeded", Redis "exceeds maximum allowed size", a gateway 413. */
function isSizeError({ status, message }: EndpointError): boolean {
  return status === 413 || /\bmax(imum)?\b.*\bsize\b/i.test(message);
}
