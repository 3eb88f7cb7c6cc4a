import type { Endpoint } from "../../endpoints/endpoint.ts";
import { subscribeOf } from "../../endpoints/subscribe.ts";
import { stopwatch } from "../../runtime.ts";
import { ChannelStream, type StreamListener } from "./channel-stream.ts";
import { timesToAsk, watchesIn } from "./lottery.ts";
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

/** How often a waiter asks again after rounds of which it got a part, while nobody may hold what it waits for. */
const mostAsksAgain = 3;

/** By endpoint and channel: the streams of this process. */
const shared = new WeakMap<Endpoint, Map<string, ChannelStream>>();

/**
 * Whether the calls of a process may share streams. On Workers they may not: what one request has opened ends with it, and
 * must not be used by another.
 */
const sharesStreams = () => Object(Reflect.get(globalThis, "navigator")).userAgent !== "Cloudflare-Workers";

/** For how long an endpoint is not asked for a stream again, in ms: after a stream that stood, and after one that never did. */
const rest = { afterCut: 1_000, afterFailure: 30_000 };

/**
 * Waits for messages on some channels, each at one endpoint at a time: the first in the client's order that answers.
 * So all who wait are told by the same endpoint, and draw from one lottery. If its stream ends, the next one follows.
 */
export class ChannelListener implements WakeUpListener {
  readonly #settings: ListenerSettings;
  readonly #waiter: Waiter;
  readonly #channels: readonly string[];
  readonly #elapsed: () => number;
  /** By endpoint: when it may be asked for a stream again, in ms of `#elapsed`. */
  readonly #restsUntil = new Map<Endpoint, number>();
  /** By channel: leaves its stream. */
  readonly #streams = new Map<string, () => void>();
  /** When the last message came, in ms of `#elapsed`. */
  #toldAt = 0;
  /** ms between two messages; 0: not known. */
  #interval = 0;
  /** When to ask, in ms of `#elapsed`. */
  #askAt = Infinity;
  /** When to ask unless a message comes before, in ms of `#elapsed`. */
  #substituteAt = Infinity;
  /** How long a turn of the lottery is, in ms. */
  #slot = 1;
  /** How often it has asked again since the last message. */
  #asksAgain = 0;
  #hasMessage = false;
  #wake: (() => void) | undefined;

  constructor(settings: ListenerSettings, waiter: Waiter, channels: readonly string[]) {
    this.#settings = settings;
    this.#waiter = waiter;
    this.#channels = channels;
    this.#elapsed = stopwatch(settings.runtime);
  }

  async wait({ round, mayBeSplit, poll, longest, signal }: WakeUpPause): Promise<void> {
    const { endpoints, runtime, latencies } = this.#settings;
    const { min, max } = fallback;
    const { longestPause = maxSleep } = this.#waiter;
    const began = this.#elapsed();
    // Room for one whole attempt of those that ask before.
    this.#slot = Math.max(1, 1.5 * round.elapsed());
    if (mayBeSplit) this.#askAgain();
    const slowPoll = min + runtime.random() * (max - min);
    // Not only those that have answered: a round is over before its last answers.
    const healthy = endpoints.filter(
      (endpoint, index) => round.answers[index]?.outcome !== "error" && latencies?.get(endpoint) !== 0,
    );
    while (!signal?.aborted) {
      const isTold = this.#channels.every((channel) => this.#join(channel, healthy));
      // As long as messages come, those that are told to ask do it for all.
      const until = isTold ? Math.max(began, this.#toldAt) + slowPoll : began + poll;
      const latest = began + Math.min(longest, longestPause);
      const remaining = Math.min(until, latest, this.#askAt, this.#substituteAt) - this.#elapsed();
      if (remaining <= 0) break;
      await this.#idle(remaining, signal);
    }
    // What comes during the next round is for the pause after it.
    if (this.#askAt <= this.#elapsed()) this.#askAt = Infinity;
    if (this.#substituteAt <= this.#elapsed()) this.#substituteAt = Infinity;
  }

  close(): void {
    for (const leave of this.#streams.values()) leave();
    this.#streams.clear();
  }

  /**
   * Joins a stream of the channel, where it has none.
   *
   * @returns whether it has one
   */
  #join(channel: string, healthy: readonly Endpoint[]): boolean {
    if (this.#streams.has(channel)) return true;
    const now = this.#elapsed();
    const endpoint = healthy.find((one) => subscribeOf(one) && (this.#restsUntil.get(one) ?? 0) <= now);
    if (!endpoint) return false;
    const stream = this.#streamOf(endpoint, channel);
    const listener: StreamListener = {
      waiter: this.#waiter,
      onSubscribed: (turn) => this.#note(turn),
      onMessage: (turn, watch) => {
        this.#hasMessage = true;
        this.#asksAgain = 0;
        this.#note(turn, watch);
      },
      onClosed: (wasOpen) => {
        this.#streams.delete(channel);
        this.#restsUntil.set(endpoint, this.#elapsed() + (wasOpen ? rest.afterCut : rest.afterFailure));
        this.#wake?.();
      },
    };
    this.#streams.set(channel, () => stream.leave(listener));
    stream.join(listener);
    return true;
  }

  /**
   * Those that asked at the same moment may have got a part each, and then all are refused: each asks once more, or, as long
   * as no message shows that somebody holds it, a few times, later each time. A message for that would wake up others as
   * well, again and again where a holder has a quorum, but not every endpoint.
   */
  #askAgain(): void {
    if (this.#asksAgain >= (this.#hasMessage ? 1 : mostAsksAgain)) return;
    const turn = (1 + 3 * this.#settings.runtime.random()) * 2 ** this.#asksAgain;
    this.#asksAgain += 1;
    this.#askAt = Math.min(this.#askAt, this.#elapsed() + turn * this.#slot);
  }

  #note(turn: number, watch = Infinity): void {
    const now = this.#elapsed();
    // Of several intervals the longest counts, and less with each that is shorter.
    if (this.#toldAt > 0) this.#interval = Math.max(now - this.#toldAt, 0.9 * this.#interval);
    this.#toldAt = now;
    const { turnsIn, substitutesIn } = timesToAsk(turn, this.#slot, this.#interval || Infinity);
    this.#askAt = Math.min(this.#askAt, now + turnsIn);
    this.#substituteAt = now + Math.min(substitutesIn, watchesIn(watch, this.#slot));
    this.#wake?.();
  }

  #streamOf(endpoint: Endpoint, channel: string): ChannelStream {
    const streams = (sharesStreams() && shared.get(endpoint)) || new Map<string, ChannelStream>();
    if (sharesStreams()) shared.set(endpoint, streams);
    const known = streams.get(channel);
    if (known) return known;
    const stream: ChannelStream = new ChannelStream(endpoint, channel, this.#settings, () => {
      if (streams.get(channel) === stream) streams.delete(channel);
    });
    streams.set(channel, stream);
    return stream;
  }

  /** Ends after `ms`, with a change of a stream, or with an abort. */
  #idle(ms: number, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        cancel();
        signal?.removeEventListener("abort", end);
        this.#wake = undefined;
        resolve();
      };
      const cancel = this.#settings.runtime.timer(ms, end);
      signal?.addEventListener("abort", end);
      this.#wake = end;
    });
  }
}
