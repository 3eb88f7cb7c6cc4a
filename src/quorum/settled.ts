import type { Runtime } from "../runtime.ts";
import { minLatency, usefulWait } from "./latency.ts";
import type { Round, RoundContext } from "./round.ts";
import type { Answer } from "./tally.ts";

/** Ends with `request`, or after `ms`. */
export function settledWithin(runtime: Runtime, ms: number, request: Promise<unknown>): Promise<void> {
  return new Promise((resolve) => {
    const cancel = runtime.timer(ms, resolve);
    void request.then(() => {
      cancel();
      resolve();
    });
  });
}

/**
 * Ends with a round that nothing else keeps alive: once it is decided, and the others have had as long as they usually take,
 * half as long again as the decision took, and 50 ms. What is under way then goes on, as long as the process does; without a
 * decision, all that may answer are waited for.
 */
export async function mostlyDone(context: RoundContext, round: Round<Answer>): Promise<void> {
  const { endpoints, runtime, latencies = new Map() } = context;
  if ((await round.result) === "unavailable") return round.done;
  const silent = endpoints.filter((_, index) => !round.answers[index]);
  if (silent.length === 0) return;
  const elapsed = round.elapsed();
  const usual = Math.max(minLatency, usefulWait(latencies, silent), 1.5 * elapsed);
  await settledWithin(runtime, usual - elapsed, round.done);
}

/** The same for a round that frees what may be at any endpoint: where most have nothing to free, the others may have it. */
export async function mostlyFreed(context: RoundContext, round: Round<Answer>): Promise<void> {
  await ((await round.result) === "granted" ? mostlyDone(context, round) : round.done);
}
