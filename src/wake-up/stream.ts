import type { Endpoint } from "../endpoints/endpoint.ts";
import type { Runtime } from "../runtime/runtime.ts";
import { lineSplitter, parseEvent } from "./events.ts";

export interface StreamReader {
  /** Every later message arrives. */
  onSubscribed(): void;
  onMessage(message: string): void;
  onEnd(hasStood: boolean): void;
}

export class ChannelStream {
  readonly endpoint: Endpoint;
  readonly channel: string;
  readonly #controller = new AbortController();
  readonly #readers = new Set<StreamReader>();
  readonly #cancelTimeout: () => void;
  readonly #forget: (stream: ChannelStream) => void;
  #stands = false;

  /** @param context `timeout`: ms until the subscription must stand */
  constructor(
    endpoint: Endpoint,
    channel: string,
    { runtime, timeout }: { readonly runtime: Runtime; readonly timeout: number },
    forget: (stream: ChannelStream) => void,
  ) {
    this.endpoint = endpoint;
    this.channel = channel;
    this.#forget = forget;
    // Not left to the endpoint, which may ignore its signal.
    this.#cancelTimeout = runtime.timer(timeout, () => this.#end());
    // After any end, waiters look for another endpoint, or poll.
    void this.#read()
      .catch(() => undefined)
      .then(() => this.#end());
  }

  join(reader: StreamReader): void {
    this.#readers.add(reader);
    if (this.#stands) reader.onSubscribed();
  }

  leave(reader: StreamReader): void {
    this.#readers.delete(reader);
    if (this.#readers.size === 0) this.#end();
  }

  async #read(): Promise<void> {
    const { signal } = this.#controller;
    const body = await this.endpoint.subscribe!(this.channel, signal);
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
      this.#stands = true;
      this.#cancelTimeout();
      for (const reader of this.#readers) reader.onSubscribed();
    }
    if (event?.kind === "message") for (const reader of this.#readers) reader.onMessage(event.message);
  }

  #end(): void {
    this.#cancelTimeout();
    this.#controller.abort();
    this.#forget(this);
    const readers = [...this.#readers];
    this.#readers.clear();
    for (const reader of readers) reader.onEnd(this.#stands);
  }
}
