export interface Answer {
  readonly outcome: "granted" | "held" | "lost";
}

/** `refused`: no quorum is possible. `unavailable`: neither can be shown. */
export type RoundResult = "granted" | "refused" | "unavailable";

/** Any two quorums share an endpoint: ⌊n/2⌋ + 1. */
export function quorumOf(count: number): number {
  return (count >> 1) + 1;
}

/** No quorum is left: n − q + 1. */
export function isVeto(against: number, count: number): boolean {
  return against > count - quorumOf(count);
}

/** A failure counts only once contention and outage can be told apart. The last answer always decides. */
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
