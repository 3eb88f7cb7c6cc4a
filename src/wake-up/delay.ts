/** Of about so many waiters, few ask at once. */
const crowd = 1_000;

/** With fewer, more waiters ask. With more, a free lock stays idle for longer. */
const roundTrips = 4;

/**
 * ms until a waiter asks after a message. If all asked at once, one of a thousand would be granted. Nobody knows how
 * many wait, so delays follow a truncated exponential distribution: few are short, whatever the number, and all others
 * hear in time that somebody has asked.
 *
 * Source: J. Nonnenmacher, E. Biersack, "Scalable Feedback for Large Groups", IEEE/ACM Transactions on Networking 7,
 * 1999, used by RFC 5401, 5.2.
 *
 * @param roundTrip ms until others hear that somebody asks
 */
export function delayOf(roundTrip: number, random: number): number {
  return roundTrips * roundTrip * Math.max(0, 1 + Math.log(1 - random) / Math.log(crowd));
}
