import { settledWithin } from "../runtime.ts";
import { leastPatience, type Round, type RoundContext } from "./round.ts";

/**
 * Waits for a round that nothing else keeps alive, but not for slow endpoints: once the round is decided, the others have half
 * as long again, and at least 50 ms in all. Requests under way then go on, as long as the process does. Without a decision
 * every endpoint is waited for.
 */
export async function mostlyDone({ runtime }: RoundContext, round: Round): Promise<void> {
  if ((await round.result) === "unavailable") return round.done;
  if (round.calls.every(({ answer }) => answer)) return;
  const elapsed = round.elapsed();
  await settledWithin(runtime, Math.max(elapsed / 2, leastPatience - elapsed), round.done);
}

/** The same for a round that frees. If a quorum had nothing to free, another endpoint may have: all are waited for. */
export async function mostlyFreed(context: RoundContext, round: Round): Promise<void> {
  await ((await round.result) === "granted" ? mostlyDone(context, round) : round.done);
}
