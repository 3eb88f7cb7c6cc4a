import { onAbort } from "../../abort.ts";
import type { Endpoint } from "../../endpoints/endpoint.ts";
import { subscribeOf } from "../../endpoints/subscribe.ts";
import { stopwatch } from "../../runtime.ts";
import type { StreamListener } from "./channel-stream.ts";
import { asksIn, watchesIn } from "./lottery.ts";
import { sharedStream } from "./shared-streams.ts";
import {
  type ListenerSettings,
  maxFallbackPoll,
  maxSleep,
  type Waiter,
  type WakeUpListener,
  type WakeUpPause,
} from "./wake-up.ts";

/** Bounds of the pause after which a waiter asks although no message came, in ms. Uniform between them. */
const fallback = { min: 1_000, max: maxFallbackPoll };

/**
 * From so many times the latency of the nearest endpoint, and so many ms more, another one is far. Not the nearest one is
 * listened to, because with several each would have a lottery of its own, and more waiters would ask.
 */
const far = { times: 3, ms: 20 };

/** For how long an endpoint is not asked for a stream again, in ms: after a stream that stood, and after one that never did. */
const rest = { afterCut: 1_000, afterFailure: 30_000 };

/** A stream that a listener has joined. */
interface Joined {
  readonly endpoint: Endpoint;
  readonly leave: () => void;
}

/**
 * Waits for messages on some channels, each at one endpoint at a time: the first in the client's order that answers, and
 * is not far. So those who wait are told by the same endpoint, and draw from one lottery; with endpoints that are far from
 * some of them and near to others, by two. If its stream ends, or it becomes silent, the next one follows.
 */
export class ChannelListener implements WakeUpListener {
  readonly #settings: ListenerSettings;
  readonly #waiter: Waiter;
  readonly #channels: readonly string[];
  readonly #elapsed: () => number;
  /** By endpoint: when it may be asked for a stream again, in ms of `#elapsed`. */
  readonly #restsUntil = new Map<Endpoint, number>();
  /** By channel. */
  readonly #streams = new Map<string, Joined>();
  /** When the last message came, in ms of `#elapsed`. */
  #toldAt = 0;
  /** ms between two messages; 0: not known. */
  #interval = 0;
  /** When to ask, unless a message comes before, in ms of `#elapsed`. */
  #askAt = Infinity;
  /** How long a turn of the lottery is, in ms. */
  #slot = 1;
  #wake: (() => void) | undefined;

  constructor(settings: ListenerSettings, waiter: Waiter, channels: readonly string[]) {
    this.#settings = settings;
    this.#waiter = waiter;
    this.#channels = channels;
    this.#elapsed = stopwatch(settings.runtime);
  }

  async wait({ round, poll, longest, signal }: WakeUpPause): Promise<void> {
    const { runtime } = this.#settings;
    const { min, max } = fallback;
    const { longestPause = maxSleep } = this.#waiter;
    const began = this.#elapsed();
    // Room for one whole attempt of those that ask before.
    this.#slot = Math.max(1, 1.5 * round.elapsed());
    const slowPoll = min + runtime.random() * (max - min);
    while (!signal?.aborted) {
      const { isFar, changesIn } = this.#distances(round);
      const isTold = this.#channels.every((channel) => this.#join(channel, round, isFar));
      // As long as messages come, those that are told to ask do it for all.
      const until = isTold ? Math.max(began, this.#toldAt) + slowPoll : began + poll;
      const latest = began + Math.min(longest, longestPause);
      const remaining = Math.min(until, latest, this.#askAt) - this.#elapsed();
      if (remaining <= 0) break;
      await this.#idle(Math.min(remaining, changesIn), signal);
    }
    // What comes during the next round is for the pause after it.
    if (this.#askAt <= this.#elapsed()) this.#askAt = Infinity;
  }

  close(): void {
    for (const { leave } of this.#streams.values()) leave();
    this.#streams.clear();
  }

  /** Which endpoints are far, as far as rounds have shown it; and in how many ms more of them will be. */
  #distances(round: WakeUpPause["round"]): { isFar(endpoint: Endpoint): boolean; changesIn: number } {
    const { endpoints, latencies = new Map<Endpoint, number>() } = this.#settings;
    const limit = far.times * Math.min(...[...latencies.values()].filter(Boolean)) + far.ms;
    // What has not answered yet takes at least as long as it has taken so far.
    const unknownFor = round.elapsed();
    const isPending = endpoints.some((endpoint) => !latencies.has(endpoint)) && unknownFor <= limit;
    return {
      isFar: (endpoint) => (latencies.get(endpoint) ?? unknownFor) > limit,
      changesIn: isPending ? limit - unknownFor + 1 : Infinity,
    };
  }

  /**
   * Joins a stream of the channel, where it has none, or one at a far or silent endpoint.
   *
   * @returns whether it has one
   */
  #join(channel: string, { calls }: WakeUpPause["round"], isFar: (endpoint: Endpoint) => boolean): boolean {
    const { endpoints, latencies } = this.#settings;
    const joined = this.#streams.get(channel);
    const now = this.#elapsed();
    // Not only those that have answered: a round is over before its last answers.
    const usable = endpoints.filter(
      (one, index) =>
        latencies?.get(one) !== 0 &&
        (one === joined?.endpoint ||
          (calls[index]?.answer?.outcome !== "error" &&
            subscribeOf(one) &&
            (this.#restsUntil.get(one) ?? 0) <= now)),
    );
    // A stream is not left for an endpoint that may turn out to be far.
    const near = usable.filter((one) => !isFar(one));
    const endpoint =
      near.find((one) => !joined || one === joined.endpoint || latencies?.has(one)) ?? near[0] ?? usable[0];
    if (!endpoint || endpoint === joined?.endpoint) return joined !== undefined;
    const stream = sharedStream(endpoint, channel, this.#settings);
    if (!stream) return joined !== undefined;
    joined?.leave();
    const listener: StreamListener = {
      waiter: this.#waiter,
      onSubscribed: (turn) => this.#note(turn),
      onMessage: (turn, watch) => {
        this.#note(turn, watch);
      },
      onClosed: (wasOpen) => {
        this.#streams.delete(channel);
        this.#restsUntil.set(endpoint, this.#elapsed() + (wasOpen ? rest.afterCut : rest.afterFailure));
        this.#wake?.();
      },
    };
    this.#streams.set(channel, { endpoint, leave: () => stream.leave(listener) });
    stream.join(listener);
    return true;
  }

  #note(turn: number, watch = Infinity): void {
    const now = this.#elapsed();
    // Of several intervals the longest counts, and less with each that is shorter.
    if (this.#toldAt > 0) this.#interval = Math.max(now - this.#toldAt, 0.9 * this.#interval);
    this.#toldAt = now;
    const wait = Math.min(asksIn(turn, this.#slot, this.#interval || Infinity), watchesIn(watch, this.#slot));
    // What is due stays due.
    if (this.#askAt > now) this.#askAt = now + wait;
    this.#wake?.();
  }

  /** Ends after `ms`, with a change of a stream, or with an abort. */
  #idle(ms: number, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        cancel();
        ignoreAbort?.();
        this.#wake = undefined;
        resolve();
      };
      const cancel = this.#settings.runtime.timer(ms, end);
      const ignoreAbort = signal && onAbort(signal, end);
      this.#wake = end;
    });
  }
}
