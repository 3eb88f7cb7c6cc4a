import { maxTimerDelay, type Runtime } from "../runtime.ts";

/**
 * Bounds of the pause between two rounds, in ms. After a round that took longer than `min` the shortest pause is as
 * long as the round, up to a third of `max`: endpoints may be far away.
 */
export interface BackoffBounds {
  /** The shortest pause, at least 1. Default 25, or `max` if that is less. */
  readonly min?: number | undefined;
  /** The longest pause. Default 1 000, or `min` if that is more. */
  readonly max?: number | undefined;
}

/** How long to pause before the next round: bounds, or a function of the attempt (1, 2, …) in ms. */
export type Backoff = BackoffBounds | ((attempt: number) => number);

/**
 * The next pause by decorrelated jitter: uniform between the shortest pause and three times the last one, at most
 * `max`. Contenders that collided once drift apart, and pauses grow only while they keep colliding.
 *
 * Source: Marc Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
 */
export function jitteredPause(previous: number, min: number, max: number, random: number): number {
  const high = Math.max(min, previous * 3);
  return Math.min(max, min + random * (high - min));
}

/** What a waiter knows of those that have held it since the waiter began to ask. */
export interface Turnover {
  /** Whether the last two rounds have shown the same holder. */
  readonly isSame: boolean;
  /** How often a round has shown another holder than the one before. */
  readonly changes: number;
  /** ms since a round has shown a holder for the first time. */
  readonly watched: number;
}

/**
 * The next pause, before bounds and jitter, of a waiter that knows the holder of the last two rounds. While that is the
 * same one, pauses grow. They are never less than a share of the time that one holder seems to take, which grows with the
 * number of changes: the more were served before this waiter, the more are likely to wait beside it.
 *
 * The figures are those of the best of many such rules: `npm run bench -- waiting` shows what comes of them.
 */
export function turnoverPause(previous: number, { isSame, changes, watched }: Turnover): number {
  const share = changes && 0.7 * (watched / changes) * Math.cbrt(changes);
  return Math.max(share, isSame ? 1.5 * previous : 0);
}

/** What a round has shown to a waiter. */
export interface Sighting {
  /** Stands for the holder; undefined: none was seen. */
  readonly holder: number | undefined;
  /** ms since the call. */
  readonly waited: number;
}

/**
 * A series of pauses in ms, one per call. `took`: how long the last round took, in ms. Contenders that are far from their
 * endpoints have to drift further apart, because each of their attempts blocks the others for longer. `seen`: what that
 * round has shown.
 */
export function pauses(
  backoff: Backoff,
  runtime: Pick<Runtime, "random">,
): (took?: number, seen?: Sighting) => number {
  let attempt = 0;
  let pause = 0;
  let holder: number | undefined;
  let changes = 0;
  let since = 0;
  let quickest = Infinity;
  return (took = 0, seen) => {
    attempt += 1;
    // The user's function may return anything; a timer must not get NaN or a negative delay.
    if (typeof backoff === "function") {
      return Math.min(maxTimerDelay, Math.max(0, Number(backoff(attempt)) || 0));
    }
    const { max = 1_000, min = Math.min(25, max) } = backoff;
    // Bounded first: Infinity minus Infinity is NaN.
    const [least, most] = [Math.min(maxTimerDelay, min), Math.min(maxTimerDelay, Math.max(min, max))];
    // At most a third of the longest pause, so that room remains for jitter.
    const far = (ms: number) => Math.max(least, Math.min(ms, most / 3));
    quickest = Math.min(quickest, took);
    const previous = holder;
    holder = seen?.holder ?? previous;
    if (previous === undefined) since = seen?.waited ?? 0;
    // Far away it is not the holder that is hard to get past, but those who ask at the same time.
    if (seen?.holder === undefined || quickest > 4 * least) {
      pause = jitteredPause(Math.max(pause, Math.min(took, most)), far(took), most, runtime.random());
      return pause;
    }
    // The first round may have had to connect: it says little of how far the endpoints are.
    const near = far(quickest);
    if (previous === undefined) {
      pause = jitteredPause(pause > 0 ? near : quickest, near, most, runtime.random());
      return pause;
    }
    const isSame = holder === previous;
    if (!isSame) changes += 1;
    const within = (ms: number) => Math.min(most, Math.max(near, ms));
    pause = within(turnoverPause(pause, { isSame, changes, watched: seen.waited - since }));
    return within(pause * (0.5 + runtime.random()));
  };
}
