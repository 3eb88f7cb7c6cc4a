import type { Endpoint } from "../../endpoints/endpoint.ts";
import { subscribeOf } from "../../endpoints/subscribe.ts";
import type { Runtime } from "../../runtime.ts";
import { type ChannelEvent, lineSplitter, parseEvent } from "./events.ts";
import { drawTurns, shuffled } from "./lottery.ts";
import type { Waiter } from "./wake-up.ts";

type Released = Extract<ChannelEvent, { readonly kind: "released" }>;

/** The name that calls every waiter of a channel. */
const everybody = "all";

/** One waiter of a stream. */
export interface StreamListener {
  readonly waiter: Waiter;
  /** The subscription stands. A message may have been missed. `turn`: when to ask for that, in slots. */
  onSubscribed(turn: number): void;
  /**
   * A message came. `turn`: see {@link drawTurns}. `watch`: the turn to look after whether those that it called have come.
   * Default: others do.
   */
  onMessage(turn: number, watch?: number): void;
  /** The stream has ended. `wasOpen`: it had been subscribed. */
  onClosed(wasOpen: boolean): void;
}

/** What a stream needs of its client. */
export interface StreamContext {
  readonly runtime: Runtime;
  /** ms in which the subscription must stand. */
  readonly timeout: number;
}

/** A subscription to one channel at one endpoint, shared by all who wait on it. */
export class ChannelStream {
  readonly #runtime: Runtime;
  readonly #controller = new AbortController();
  readonly #listeners = new Set<StreamListener>();
  readonly #onEnd: () => void;
  readonly #random = () => this.#runtime.random();
  readonly #cancelTimeout: () => void;
  #isOpen = false;

  /**
   * @param endpoint one that has streams
   * @param onEnd called when it has ended, or nobody waits any more
   */
  constructor(endpoint: Endpoint, channel: string, { runtime, timeout }: StreamContext, onEnd: () => void) {
    this.#runtime = runtime;
    this.#onEnd = onEnd;
    // Not left to the endpoint: one may ignore its signal.
    this.#cancelTimeout = runtime.timer(timeout, () => this.#end());
    // A failure ends it like any other end: the waiters then look for another endpoint, or poll.
    void this.#read(endpoint, channel)
      .catch(() => undefined)
      .then(() => this.#end());
  }

  /** Adds a waiter. What was released before it came, others of the stream have been told, unless it was for this one. */
  join(listener: StreamListener): void {
    this.#listeners.add(listener);
    const turn = this.#isOpen ? listener.waiter.firstTurn?.() : undefined;
    if (turn !== undefined) listener.onSubscribed(turn);
  }

  /** Removes a waiter; with the last one the stream ends. */
  leave(listener: StreamListener): void {
    this.#listeners.delete(listener);
    if (this.#listeners.size === 0) this.#end();
  }

  async #read(endpoint: Endpoint, channel: string): Promise<void> {
    const { signal } = this.#controller;
    const body = await subscribeOf(endpoint)!(channel, signal);
    const reader = body.getReader();
    const decoder = new TextDecoder();
    const split = lineSplitter();
    try {
      while (!signal.aborted) {
        const piece = await reader.read();
        if (!piece.value) return;
        for (const line of split(decoder.decode(piece.value, { stream: true }))) this.#note(line);
      }
    } finally {
      await reader.cancel();
    }
  }

  #note(line: string): void {
    const event = parseEvent(line);
    if (event?.kind === "subscribed") {
      this.#isOpen = true;
      this.#cancelTimeout();
      shuffled(this.#listeners, this.#random).forEach((listener, position) => {
        listener.onSubscribed(listener.waiter.firstTurn?.() ?? position);
      });
    }
    if (event?.kind === "released") this.#draw(event);
  }

  /** Those that a message is for draw their turns; the others learn that messages come, and who is to watch. */
  #draw({ waiters, name, streams }: Released): void {
    const all = shuffled(this.#listeners, this.#random);
    const isCalled = ({ waiter }: StreamListener) => name === everybody || waiter.name === name;
    const called = all.filter(isCalled);
    const others = all.filter((listener) => !isCalled(listener));
    // A message that names nobody is counted by streams, which may have any number of waiters.
    const distance = name === undefined ? waiters : waiters / called.length;
    const turns = drawTurns(called.length, distance, this.#random);
    called.forEach((listener, position) => {
      listener.onMessage(turns[position]!);
    });
    const watches = streams ? drawTurns(others.length, streams, this.#random) : [];
    others.forEach((listener, position) => {
      listener.onMessage(Infinity, watches[position]);
    });
  }

  #end(): void {
    this.#cancelTimeout();
    this.#controller.abort();
    this.#onEnd();
    const listeners = [...this.#listeners];
    this.#listeners.clear();
    for (const listener of listeners) listener.onClosed(this.#isOpen);
  }
}
