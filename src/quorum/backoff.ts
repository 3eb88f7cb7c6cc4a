import { maxTimerDelay, type Runtime } from "../runtime/runtime.ts";

/**
 * Bounds of the pause between two rounds, in ms. After a long round, the shortest pause is as long as the round, up to
 * a third of `max`.
 */
export interface BackoffBounds {
  /** The shortest pause, at least 1. Default 25, or `max` if that is less. */
  readonly min?: number | undefined;
  /** The longest pause. Default 2 000, or `min` if that is more. A call begins with at most 400. */
  readonly max?: number | undefined;
}

/** The pause before the next round: bounds, or a function of the attempt (1, 2, …) in ms. */
export type Backoff = BackoffBounds | ((attempt: number) => number);

/**
 * Decorrelated jitter: contenders that collided once drift apart, and pauses grow only while they keep colliding.
 *
 * Source: Marc Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
 */
export function jitteredPause(previous: number, min: number, max: number, random: number): number {
  const high = Math.max(min, previous * 3);
  return Math.min(max, min + random * (high - min));
}

/** In ms, so that after holds of 50 ms a free lock does not stay idle. */
const longestAtFirst = 400;

/**
 * Pauses in ms. The longest is a tenth of the time waited so far, so that nobody polls often for a job of ten minutes.
 * `npm run bench -- waiting` shows the effect of these figures.
 *
 * @param took ms of the last round: contenders that are far from their endpoints block each other for longer
 */
export function pauses(backoff: Backoff, runtime: Pick<Runtime, "random">): (took?: number) => number {
  let attempt = 0;
  let pause = 0;
  let waited = 0;
  return (took = 0) => {
    attempt += 1;
    // A timer must not get NaN or a negative delay.
    if (typeof backoff === "function") {
      return Math.min(maxTimerDelay, Math.max(0, Number(backoff(attempt)) || 0));
    }
    const { max = Math.max(2_000, backoff.min ?? 0), min = Math.min(25, max) } = backoff;
    // Bounded first: Infinity minus Infinity is NaN.
    const [least, longest] = [Math.min(maxTimerDelay, min), Math.min(maxTimerDelay, max)];
    const round = Math.min(took, longest);
    const most = Math.max(least, Math.min(longest, Math.max(longestAtFirst, 10 * round, waited / 10)));
    // For jitter.
    const shortest = Math.max(least, Math.min(round, most / 3));
    pause = jitteredPause(Math.max(pause, Math.min(round, most)), shortest, most, runtime.random());
    waited += round + pause;
    return pause;
  };
}
