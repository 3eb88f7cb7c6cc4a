import { settledWithin } from "../runtime.ts";
import { minLatency, usefulWait } from "./latency.ts";
import type { Round, RoundContext } from "./round.ts";
import type { Answer } from "./tally.ts";

/**
 * Waits for a round that nothing else keeps alive, but not for slow endpoints: once the round is decided, the others have as
 * long as they usually take, half as long again as the decision took, and at least 50 ms. Requests under way then go on, as
 * long as the process does. Without a decision every endpoint is waited for.
 */
export async function mostlyDone(context: RoundContext, round: Round<Answer>): Promise<void> {
  const { endpoints, runtime, latencies } = context;
  if ((await round.result) === "unavailable") return round.done;
  const silent = endpoints.filter((_, index) => !round.answers[index]);
  if (silent.length === 0) return;
  const elapsed = round.elapsed();
  const usual = Math.max(minLatency, usefulWait(latencies, silent), 1.5 * elapsed);
  await settledWithin(runtime, usual - elapsed, round.done);
}

/** The same for a round that frees. Where a quorum had nothing to free, another endpoint may have: all are waited for. */
export async function mostlyFreed(context: RoundContext, round: Round<Answer>): Promise<void> {
  await ((await round.result) === "granted" ? mostlyDone(context, round) : round.done);
}
