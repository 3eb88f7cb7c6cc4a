import { isRedlockError, type QuorumError } from "../errors/errors.ts";
import { isVeto } from "../quorum/tally.ts";
import { emit } from "./events.ts";

/**
 * Whether so many endpoints failed that no quorum could answer. Contention or a client with too much to send is no
 * outage: work without a lock could run beside a healthy lock's holder.
 */
export function isOutage(error: unknown): error is QuorumError {
  if (!isRedlockError(error) || error.code !== "NO_QUORUM") return false;
  const { votes } = error as QuorumError;
  return isVeto(votes.filter(({ outcome }) => outcome === "error").length, votes.length);
}

/** By an event, or else on the console. */
export function reportUnguarded<Event extends { readonly type: "unguarded"; readonly error: unknown }>(
  onEvent: ((event: Event) => void) | undefined,
  event: Event,
): void {
  if (onEvent) emit(onEvent, event);
  else console.warn(`redlock-edge: ran without protection (failOpen): ${(event.error as Error).message}`);
}
