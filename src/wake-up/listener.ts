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

/** ms without a message after which a waiter asks, drawn between these. */
const silence = { min: 1_000, max: 2_000 };

/** ms after which a waiter asks whatever messages come, because they may be forged. */
const maxSleep = 30_000;

/** In ms, for far endpoints. */
const leastPatience = 20;

/** ms until an endpoint is asked for a stream again. */
const rest = { afterCut: 1_000, afterFailure: 30_000 };

/**
 * Listens at the first endpoint that answers soon, so that most waiters hear the same messages. It polls until the
 * stream stands. A message only shortens a pause or shows that somebody else asks, so no lock waits for an endpoint
 * that has stopped.
 */
export class ChannelListener implements WakeUpListener, StreamReader {
  readonly #settings: ListenerSettings;
  readonly #waiter: Waiter;
  readonly #resources: readonly string[];
  readonly #elapsed: () => number;
  readonly #asks: string;
  /** In ms of `#elapsed`, as all times here. */
  readonly #restsUntil = new Map<Endpoint, number>();
  #stream: ChannelStream | undefined;
  #hearsSince = Infinity;
  #heardAt = 0;
  #askAt = Infinity;
  /** Releases that nobody has asked for yet. */
  #unasked = 0;
  #isCrowd = false;
  #wasCalled = false;
  /** In ms. */
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
      // Nobody heard of a release before the subscription stood.
      const isTold = this.#hearsSince < asked;
      const until = isTold ? Math.min(Math.max(began, this.#heardAt) + quiet, latest) : began + poll;
      const remaining = Math.min(until, this.#askAt) - this.#elapsed();
      if (remaining <= 0) break;
      // A clock may be coarse.
      await this.#idle(Math.ceil(remaining), signal);
    }
    // A message during the next round is for the pause after it.
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
      // Somebody asks for all, also about a release before the subscription stood.
      this.#hearsSince = -Infinity;
      this.#unasked = Math.max(0, this.#unasked - 1);
      if (this.#unasked === 0) this.#askAt = Infinity;
    }
    this.#wake?.();
  }

  onEnd(hasStood: boolean): void {
    this.#leave(hasStood ? rest.afterCut : rest.afterFailure);
  }

  /** ms until it asks once more, because not every endpoint may have heard of the release. */
  #retryAfter({ calls }: WakeUpPause["round"], poll: number): number {
    // The contenders have only kept each other out.
    const isSplit = calls.some(({ answer }) => answer?.outcome === "granted");
    return isSplit ? delayOf(this.#roundTrip, this.#settings.runtime.random()) : poll;
  }

  async #follow({ calls, elapsed, done }: WakeUpPause["round"]): Promise<void> {
    const { endpoints, runtime } = this.#settings;
    const channels = this.#channelsInTheWay(calls);
    if (this.#stream && !channels.includes(this.#stream.channel)) this.#leave();
    const stream = this.#stream;
    const call = calls.find(({ endpoint }) => endpoint === stream?.endpoint);
    void call?.settled.then(() => {
      // A stream whose endpoint has stopped is silent like any other.
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

  #channelsInTheWay(calls: WakeUpPause["round"]["calls"]): string[] {
    const { prefix } = this.#settings;
    const indexes = calls.flatMap(({ answer }) =>
      answer?.outcome === "held" ? (answer.blockedBy ?? 0) : [],
    );
    if (indexes.length === 0) indexes.push(0);
    return indexes.map((index) => channelOf(prefix, this.#waiter.kind, this.#resources[index]!));
  }

  /** @param ms until its endpoint is asked again */
  #leave(ms = 0): void {
    const stream = this.#stream;
    if (!stream) return;
    this.#stream = undefined;
    this.#hearsSince = Infinity;
    this.#restsUntil.set(stream.endpoint, this.#elapsed() + ms);
    stream.leave(this);
    this.#wake?.();
  }

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
