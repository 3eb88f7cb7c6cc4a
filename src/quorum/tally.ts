/** One endpoint's usable answer; more specific rounds add fields. */
export interface Answer {
  readonly outcome: "granted" | "held" | "lost";
}

/**
 * `granted`: a quorum granted. `refused`: so many endpoints refused that no quorum is possible. `unavailable`:
 * neither can be shown, because endpoints failed.
 */
export type RoundResult = "granted" | "refused" | "unavailable";

/** The smallest number of endpoints of which any two sets share one: ⌊n/2⌋ + 1. */
export function quorumOf(count: number): number {
  return (count >> 1) + 1;
}

/**
 * The result that follows from the answers so far, or `undefined` while it is open. Failure is reported only once
 * contention and outage can be told apart; the last answer always decides.
 */
export function tally(
  granted: number,
  refused: number,
  pending: number,
  count: number,
): RoundResult | undefined {
  const quorum = quorumOf(count);
  const veto = count - quorum + 1;
  if (granted >= quorum) return "granted";
  if (refused >= veto) return "refused";
  return granted + pending < quorum && refused + pending < veto ? "unavailable" : undefined;
}
