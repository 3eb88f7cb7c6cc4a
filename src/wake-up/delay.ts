/** Of about so many waiters, few ask at once. Of ten times as many, ten times as many do. */
const crowd = 1_000;

/** Of the longest delay: with fewer, more waiters ask, and with more, a free lock stays idle for longer. */
const roundTrips = 4;

/**
 * ms from a message to a waiter's question. If each asked at once, a thousand would ask, and one be granted. Nobody
 * knows how many wait, so delays follow a truncated exponential distribution: few are short, whether ten or a thousand
 * draw them, and all others hear in time that somebody has asked.
 *
 * Source: J. Nonnenmacher, E. Biersack, "Scalable Feedback for Large Groups", IEEE/ACM Transactions on Networking 7,
 * 1999, used by RFC 5401, 5.2.
 *
 * @param roundTrip ms until others hear that somebody asks
 */
export function delayOf(roundTrip: number, random: number): number {
  return roundTrips * roundTrip * Math.max(0, 1 + Math.log(1 - random) / Math.log(crowd));
}
