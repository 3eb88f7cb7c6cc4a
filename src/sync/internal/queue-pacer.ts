import type { Settings } from "../../lock/options.ts";
import { type Backoff, type BackoffBounds, pauses } from "../../quorum/backoff.ts";
import type { Round } from "../../quorum/round.ts";
import { maxTimerDelay, type Runtime, stopwatch } from "../../runtime/runtime.ts";

export interface PollPacer {
  /** The longest next pause, in ms. Sent with each request, so that the ticket of a dead process expires soon. */
  longest(): number;
  /** The next pause, in ms. Undefined: no endpoint has answered. */
  pause(ahead: number | undefined): number;
}

/**
 * Each pause is a share of the time until this ticket should be the first. So the number of requests grows with the
 * logarithm of the queue's length.
 *
 * @param backoff bounds for the first in the queue. For the others, `max` is multiplied by the tickets ahead
 */
export function queuePacer(runtime: Runtime, backoff: Backoff): PollPacer {
  return typeof backoff === "function" ? knownPauses(runtime, backoff) : measuringPacer(runtime, backoff);
}

/** The shortest pause of a waiter that gets a message. */
export interface ToldPause {
  /** ms, sent to the endpoints, so that nobody loses a place if messages do not come. */
  readonly longest: number;
  /** ms. */
  after(round: Round): number;
}

/**
 * With wake-ups a second, or `backoff.max` if that is less, except after the first round, before which nobody listens,
 * and after a round that got a part, because contenders that keep each other out get no message.
 */
export function toldPause({ backoff, wakeUp }: Pick<Settings, "backoff" | "wakeUp">): ToldPause {
  const longest = wakeUp && typeof backoff !== "function" ? Math.min(1_000, backoff.max ?? Infinity) : 0;
  let listens = false;
  return {
    longest,
    after({ calls }) {
      const isTold = listens && !calls.some(({ answer }) => answer?.outcome === "granted");
      listens = true;
      return isTold ? longest : 0;
    },
  };
}

export interface KnownPauses {
  /** In ms. */
  longest(): number;
  pause(): number;
}

/** Computed one request early, so that the endpoints can be sent it. */
export function knownPauses(runtime: Runtime, backoff: Backoff): KnownPauses {
  const nextPause = pauses(backoff, runtime);
  let chosen = nextPause();
  return {
    longest: () => chosen,
    pause() {
      const pause = chosen;
      chosen = nextPause();
      return pause;
    },
  };
}

/** `at`: in ms. */
interface QueueLength {
  readonly at: number;
  readonly ahead: number;
}

function measuringPacer(runtime: Runtime, bounds: BackoffBounds): PollPacer {
  const { max = Math.max(1_000, bounds.min ?? 0), min = Math.min(25, max) } = bounds;
  const clock = stopwatch(runtime);
  const nextBlindPause = pauses(bounds, runtime);
  let longest = Math.min(maxTimerDelay, Math.min(max, 40 * min));
  let first: QueueLength | undefined;
  let last: QueueLength = { at: 0, ahead: Infinity };

  function wishedPause(ahead: number): number {
    const at = clock();
    // An earlier ticket's first request arrived after this one's, so nothing is known yet.
    if (!first || ahead > last.ahead) first = last = { at, ahead };
    else if (ahead < last.ahead) last = { at, ahead };
    const served = first.ahead - ahead;
    // Of a holder, in ms: the average, or more if the present holder takes longer.
    const each = Math.max(min, at - last.at, served > 0 ? (at - first.at) / served : 0);
    const wished = Math.max(min, each * (ahead > 0 ? 0.75 * ahead : 0.25));
    return Math.min(max * Math.max(ahead, 1), wished);
  }

  return {
    longest: () => longest,
    pause(ahead) {
      // Never longer than the endpoints were told, because the ticket would expire.
      const pause = Math.min(longest, ahead === undefined ? nextBlindPause() : wishedPause(ahead));
      const next = Math.min(maxTimerDelay, 1.5 * pause);
      longest = ahead === undefined ? Math.max(longest, next) : next;
      return pause;
    },
  };
}
