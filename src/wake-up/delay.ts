/** For about so many waiters, few ask at the same time. With ten times as many, about ten times as many do. */
const crowd = 1_000;

/**
 * How long the longest delay is, in round trips. With fewer, more waiters ask. With more, a free lock stays idle for longer.
 */
const roundTrips = 4;

/**
 * How long a waiter waits after a message until it asks, in ms. If each asked at once, a thousand would ask, and one be
 * granted. Nobody knows how many wait, so delays are drawn from a truncated exponential distribution: few are short, whether
 * ten or a thousand draw them, and all others hear in time that somebody has asked.
 *
 * Source: J. Nonnenmacher, E. Biersack, "Scalable Feedback for Large Groups", IEEE/ACM Transactions on Networking 7, 1999, used
 * by RFC 5401, 5.2.
 *
 * @param roundTrip ms until others hear that somebody asks
 * @param random a number in [0, 1)
 */
export function delayOf(roundTrip: number, random: number): number {
  return roundTrips * roundTrip * Math.max(0, 1 + Math.log(1 - random) / Math.log(crowd));
}
