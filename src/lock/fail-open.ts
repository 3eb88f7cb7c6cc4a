import { isRedlockError, type QuorumError } from "../errors/errors.ts";
import { isVeto } from "../quorum/tally.ts";
import { emit } from "./events.ts";

/**
 * Whether a call has failed because of an outage: so many endpoints failed that no quorum could answer. Contention is none, nor is
 * a client that had too much to send. If work ran without a lock then, it would run beside the holder of a healthy one.
 */
export function isOutage(error: unknown): error is QuorumError {
  if (!isRedlockError(error) || error.code !== "NO_QUORUM") return false;
  const { votes } = error as QuorumError;
  return isVeto(votes.filter(({ outcome }) => outcome === "error").length, votes.length);
}

/** Reports that work runs without protection: by an event, or where nobody hears events by a line on the console. */
export function reportUnguarded<Event extends { readonly type: "unguarded"; readonly error: unknown }>(
  onEvent: ((event: Event) => void) | undefined,
  event: Event,
): void {
  if (onEvent) emit(onEvent, event);
  else console.warn(`redlock-edge: ran without protection (failOpen): ${(event.error as Error).message}`);
}
