import type { Endpoint } from "../endpoints/endpoint.ts";
import type { EndpointError } from "../errors.ts";
import { handOver, type Settings } from "../lock/options.ts";
import { pauses } from "../quorum/backoff.ts";
import { ask, quorumOf, type Verdict } from "../quorum/round.ts";
import type { Register, Spent } from "../redis/register.ts";
import { sleep, stopwatch } from "../runtime.ts";
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
  readonly spent: Spent;
}

/** What storing a result came to. */
export interface Completed {
  /** `refused`: another run took over. */
  readonly verdict: Verdict;
  /** Why the record has no result, where it has none. */
  readonly unstored: UnstoredReason | undefined;
}

/**
 * Stores a result and goes on trying when no quorum answers, for `lease` ms: what is left since the lease was
 * renewed. Resolves when that is decided, or goes on in the background.
 */
export async function complete(run: Completion, result: StoredResult, lease: number): Promise<Completed> {
  const { settings, spent, retention, own } = run;
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
    const write = ask(
      settings,
      timeout,
      async (call) => {
        const cause = unstored ? undefined : tooSmall.get(call.endpoint);
        if (cause) throw cause;
        return completeOne(call, own, text, retention, refused);
      },
      spent,
    );
    const verdict = await write.verdict;
    // What a minority took of a refused result stays: somebody may have brought it to a quorum meanwhile.
    if (!handOver(settings, write.done)) await write.done;
    settings.endpoints.forEach((endpoint, index) => {
      const answer = write.answers[index];
      if (answer?.outcome === "error" && isSizeError(answer.cause)) tooSmall.set(endpoint, answer.cause);
    });
    const { length: count } = settings.endpoints;
    const isTooLarge = tooSmall.size > count - quorumOf(count);
    if (verdict !== "no quorum" || unstored || !isTooLarge) return { verdict, unstored };
    // No retry mends that, and without a record the effect would be repeated when the lease ends.
    refused = text;
    record = recordOfResult(head, { unstored: "too-large" }, run.maxResult);
    return attempt();
  };
  const first = await attempt();
  if (first.verdict !== "no quorum") return first;
  const retry = async (): Promise<Completed> => {
    const next = pauses(settings.backoff, runtime);
    for (let last = first; ; last = await attempt()) {
      if (last.verdict !== "no quorum" || elapsed() >= lease) return last;
      await sleep(runtime, next());
    }
  };
  // A backoff of the user's that throws ends the retries, not the call: its effect has happened.
  const retries = retry().catch(() => first);
  if (handOver(settings, retries)) return first;
  return Promise.race([retries, sleep(runtime, patience(settings)).then(() => first)]);
}

/** How long contenders may go on parting a key among themselves, or a result wait for its quorum, in ms. */
export function patience({ timeout, wait }: Settings): number {
  return Math.max(wait, 2 * timeout);
}

/** Upstash says "max request size exceeded", Redis "exceeds maximum allowed size", a gateway 413. */
function isSizeError({ status, message }: EndpointError): boolean {
  return status === 413 || /\bmax(imum)?\b.*\bsize\b/i.test(message);
}
