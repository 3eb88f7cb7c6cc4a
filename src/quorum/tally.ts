/** One endpoint's usable answer. More specific rounds add fields. */
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

/** Whether so many of `count` endpoints are against it that no quorum of the others is possible: n − q + 1. */
export function isVeto(against: number, count: number): boolean {
  return against > count - quorumOf(count);
}

/**
 * The result that follows from the answers so far, or `undefined` while it is open. Failure is reported only once
 * contention and outage can be told apart. The last answer always decides.
 *
 * @param calls one for each endpoint, without an answer while it is missing
 */
export function tally(
  calls: readonly { readonly answer: { readonly outcome: Answer["outcome"] | "error" } | undefined }[],
): RoundResult | undefined {
  const { length } = calls;
  const quorum = quorumOf(length);
  let granted = 0;
  let refused = 0;
  let pending = 0;
  for (const { answer } of calls) {
    if (!answer) pending += 1;
    else if (answer.outcome === "granted") granted += 1;
    else if (answer.outcome !== "error") refused += 1;
  }
  if (granted >= quorum) return "granted";
  if (isVeto(refused, length)) return "refused";
  const isOpen = granted + pending >= quorum || isVeto(refused + pending, length);
  return isOpen ? undefined : "unavailable";
}
