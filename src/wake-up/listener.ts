import type { Endpoint } from "../endpoints/endpoint.ts";
import type { ListenerSettings, Waiter, WakeUpListener, WakeUpPause } from "../lock/wake-up.ts";
import type { Call } from "../quorum/round.ts";
import { onAbort } from "../runtime/abort.ts";
import { randomToken, settledWithin, stopwatch } from "../runtime/runtime.ts";
import { channelOf } from "./channel.ts";
import { delayOf } from "./delay.ts";
import { asks, free, isAsking } from "./events.ts";
import { sharedStream } from "./shared-streams.ts";
import type { ChannelStream, StreamReader } from "./stream.ts";

/** After so many ms without a message a waiter asks. Drawn between them. A poll's pause is at most as long by default. */
const silence = { min: 1_000, max: 2_000 };

/** After so many ms a waiter asks whatever messages come: they may be forged. */
const maxSleep = 30_000;

/** The least ms that a far endpoint has to answer if it is to be listened to. */
const leastPatience = 20;

/** For how long an endpoint is not asked for a stream again, in ms: after a stream that stood, and after one that never did. */
const rest = { afterCut: 1_000, afterFailure: 30_000 };

/**
 * Waits for the messages of one channel at one endpoint: the first in the client's order that answers soon, so that most
 * waiters hear the same messages. If several resources are locked, it listens to the one in the way.
 *
 * Until the stream stands it polls. Messages only shorten a pause, or show that somebody else asks: no lock waits for an
 * endpoint that has stopped.
 */
export class ChannelListener implements WakeUpListener, StreamReader {
  readonly #settings: ListenerSettings;
  readonly #waiter: Waiter;
  readonly #resources: readonly string[];
  readonly #elapsed: () => number;
  readonly #asks: string;
  /** By endpoint: when it may be asked for a stream again, in ms of `#elapsed`. */
  readonly #restsUntil = new Map<Endpoint, number>();
  #stream: ChannelStream | undefined;
  /** Since when it hears every message, in ms of `#elapsed`. */
  #hearsSince = Infinity;
  /** When the last message came, in ms of `#elapsed`. */
  #heardAt = 0;
  /** When to ask, because a message has come, in ms of `#elapsed`. */
  #askAt = Infinity;
  /** How many releases nobody has asked for yet: permits of a semaphore are released by several. */
  #unasked = 0;
  /** Whether others wait, too. */
  #isCrowd = false;
  /** Whether a message has called it since the last pause began. */
  #wasCalled = false;
  /** ms that the last round took. */
  #roundTrip = 0;
  #isClosed = false;
  #wake: (() => void) | undefined;

  constructor(settings: ListenerSettings, waiter: Waiter, resources: readonly string[]) {
    this.#settings = settings;
    this.#waiter = waiter;
    this.#resources = resources;
    this.#elapsed = stopwatch(settings.runtime);
    this.#asks = asks(randomToken(settings.runtime));
  }

  async wait({ round, poll, longest, signal }: WakeUpPause): Promise<void> {
    const { runtime } = this.#settings;
    const began = this.#elapsed();
    this.#roundTrip = round.elapsed();
    if (this.#wasCalled) this.#askAt = Math.min(this.#askAt, began + this.#retryAfter(round, poll));
    this.#wasCalled = false;
    const asked = began - this.#roundTrip;
    const quiet = silence.min + runtime.random() * (silence.max - silence.min);
    const latest = began + Math.min(longest, maxSleep);
    void this.#follow(round);
    while (!signal?.aborted) {
      // A release between the last question and the subscription has told nobody.
      const isTold = this.#hearsSince < asked;
      const until = isTold ? Math.min(Math.max(began, this.#heardAt) + quiet, latest) : began + poll;
      const remaining = Math.min(until, this.#askAt) - this.#elapsed();
      if (remaining <= 0) break;
      // Whole ms: a clock may be too coarse to show a part of one pass.
      await this.#idle(Math.ceil(remaining), signal);
    }
    // What comes during the next round is for the pause after it.
    this.#askAt = Infinity;
  }

  asking(call: Call): void {
    const { name } = this.#waiter;
    const { endpoint, channel } = this.#stream ?? {};
    if (name || call.endpoint !== endpoint || this.#hearsSince === Infinity) return;
    call.tell(["PUBLISH", channel!, this.#asks]);
  }

  close(): void {
    this.#isClosed = true;
    this.#leave();
  }

  onSubscribed(): void {
    this.#hearsSince = this.#elapsed();
  }

  onMessage(message: string): void {
    const { name = free } = this.#waiter;
    this.#heardAt = this.#elapsed();
    if (message === name) {
      this.#unasked += 1;
      const isAlone = this.#waiter.name !== undefined || !this.#isCrowd;
      const delay = isAlone ? 0 : delayOf(this.#roundTrip, this.#settings.runtime.random());
      this.#askAt = Math.min(this.#askAt, this.#heardAt + delay);
      this.#wasCalled = true;
    } else if (name === free && isAsking(message) && message !== this.#asks) {
      this.#isCrowd = true;
      // Somebody asks for all: whether it is free now, and whether it was free before the subscription stood.
      this.#hearsSince = -Infinity;
      this.#unasked = Math.max(0, this.#unasked - 1);
      if (this.#unasked === 0) this.#askAt = Infinity;
    }
    this.#wake?.();
  }

  onEnd(hasStood: boolean): void {
    this.#leave(hasStood ? rest.afterCut : rest.afterFailure);
  }

  /** ms after which one that a message has called asks once more: not every endpoint may have heard of the release. */
  #retryAfter({ calls }: WakeUpPause["round"], poll: number): number {
    // Those that got a part each have only kept each other out.
    const isSplit = calls.some(({ answer }) => answer?.outcome === "granted");
    return isSplit ? delayOf(this.#roundTrip, this.#settings.runtime.random()) : poll;
  }

  /** Joins a stream about the held resource. Leaves one of something else, or one whose endpoint does not answer the round. */
  async #follow({ calls, elapsed, done }: WakeUpPause["round"]): Promise<void> {
    const { endpoints, runtime } = this.#settings;
    const channels = this.#channelsInTheWay(calls);
    if (this.#stream && !channels.includes(this.#stream.channel)) this.#leave();
    const stream = this.#stream;
    const call = calls.find(({ endpoint }) => endpoint === stream?.endpoint);
    void call?.settled.then(() => {
      // A stream that is silent because its endpoint has stopped looks like any other.
      if (call.answer?.outcome === "error" && this.#stream === stream) this.#leave(rest.afterFailure);
    });
    if (stream) return;
    await settledWithin(runtime, Math.max(elapsed(), leastPatience), done);
    if (this.#stream || this.#isClosed) return;
    const found = endpoints.find((endpoint, index) => {
      const { outcome = "error" } = calls[index]!.answer ?? {};
      const mayBeAsked = (this.#restsUntil.get(endpoint) ?? 0) <= this.#elapsed();
      return outcome !== "error" && mayBeAsked && endpoint.subscribe;
    });
    this.#stream = found && sharedStream(found, channels[0]!, this.#settings);
    this.#stream?.join(this);
  }

  /** The channels of the resources that were found held, or of the first one if no endpoint tells. */
  #channelsInTheWay(calls: WakeUpPause["round"]["calls"]): string[] {
    const { prefix } = this.#settings;
    const indexes = calls.flatMap(({ answer }) =>
      answer?.outcome === "held" ? (answer.blockedBy ?? 0) : [],
    );
    if (indexes.length === 0) indexes.push(0);
    return indexes.map((index) => channelOf(prefix, this.#waiter.kind, this.#resources[index]!));
  }

  /** @param ms for how long its endpoint is not asked for a stream. Default: it may be asked at once */
  #leave(ms = 0): void {
    const stream = this.#stream;
    if (!stream) return;
    this.#stream = undefined;
    this.#hearsSince = Infinity;
    this.#restsUntil.set(stream.endpoint, this.#elapsed() + ms);
    stream.leave(this);
    this.#wake?.();
  }

  /** Ends after `ms`, with a message, or with an abort. */
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
