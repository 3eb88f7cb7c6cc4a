/** An event that is expected in so many seeds of a run must occur in it. One run in e^20 lacks it by chance. */
const expected = 20;

/**
 * The events that should have occurred in a run of the default themes, and did not: else they, or an invariant that was
 * never checked where it could have failed, are not tested.
 *
 * @param seeds the number of seeds
 * @param occurred the events that did occur
 * @param shares the share of seeds in which an event occurs, by its name: `shares.json`
 */
export function missing(
  seeds: number,
  occurred: { has(event: string): boolean },
  shares: Readonly<Record<string, number>>,
): string[] {
  return Object.entries(shares).flatMap(([event, share]) =>
    !occurred.has(event) && seeds * share >= expected ? [event] : [],
  );
}
