import { isRedlockError, type QuorumError } from "../errors/errors.ts";
import { isVeto } from "../quorum/tally.ts";
import { emitOrWarn } from "./events.ts";

/**
 * So many endpoints failed that no quorum could answer. Contention is no outage, because work without a lock would run
 * beside the holder.
 */
export function isOutage(error: unknown): error is QuorumError {
  if (!isRedlockError(error) || error.code !== "NO_QUORUM") return false;
  const { votes } = error as QuorumError;
  return isVeto(votes.filter(({ outcome }) => outcome === "error").length, votes.length);
}

export function reportUnguarded<Event extends { readonly type: "unguarded"; readonly error: unknown }>(
  settings: Parameters<typeof emitOrWarn<Event>>[0],
  event: Event,
): void {
  emitOrWarn(settings, event, `ran without protection (failOpen): ${(event.error as Error).message}`);
}
