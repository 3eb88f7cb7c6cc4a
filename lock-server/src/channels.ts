type Stream = ReadableStreamDefaultController<Uint8Array>;

/**
 * How much may wait for a reader: bytes, with some for the keeping of each event. Those of this package are short and few:
 * one that lets so many wait reads no more.
 */
const waiting: QueuingStrategy<Uint8Array> = { highWaterMark: 100_000, size: ({ length }) => 100 + length };

/** How often each stream gets a comment, in ms. The platform notices that a reader has gone only when it is written to. */
const heartbeat = 15_000;

const encoder = /* @__PURE__ */ new TextEncoder();

/** The streams that are subscribed to an object's channels. They live in memory, and keep their object awake. */
export class Channels {
  readonly #streams = new Map<string, Set<Stream>>();
  #beating: ReturnType<typeof setInterval> | undefined;

  /** A stream of server-sent events, as Upstash's `/subscribe` sends them. It ends when its reader cancels it. */
  subscribe(channel: string): ReadableStream<Uint8Array> {
    let own: Stream;
    const source: UnderlyingDefaultSource<Uint8Array> = {
      start: (stream) => {
        own = stream;
        const streams = this.#streams.get(channel) ?? new Set();
        this.#streams.set(channel, streams.add(stream));
        stream.enqueue(eventOf(["subscribe", channel, 1]));
        this.#beating ??= setInterval(() => this.#beat(), heartbeat);
      },
      cancel: () => this.#remove(channel, own),
    };
    return new ReadableStream(source, waiting);
  }

  /** Sends a message, and returns how many streams there are. */
  publish(channel: string, payload: string): number {
    this.#write(channel, eventOf(["message", channel, payload]));
    return this.subscribers(channel);
  }

  subscribers(channel: string): number {
    return this.#streams.get(channel)?.size ?? 0;
  }

  #write(channel: string, bytes: Uint8Array): void {
    for (const stream of [...(this.#streams.get(channel) ?? [])]) {
      if ((stream.desiredSize ?? 0) > 0) {
        stream.enqueue(bytes);
      } else {
        this.#remove(channel, stream);
        stream.error(new Error("its events are not read"));
      }
    }
  }

  #remove(channel: string, stream: Stream): void {
    const streams = this.#streams.get(channel);
    streams?.delete(stream);
    if (streams?.size === 0) this.#streams.delete(channel);
    if (this.#streams.size > 0) return;
    clearInterval(this.#beating);
    this.#beating = undefined;
  }

  #beat(): void {
    for (const channel of [...this.#streams.keys()]) this.#write(channel, encoder.encode(": \n\n"));
  }
}

/**
 * A push as an event, as Upstash writes it: its parts with commas between them. A line break in a payload begins another
 * `data:` line of the same event, as the standard of server-sent events says.
 * https://upstash.com/docs/redis/features/restapi#subscribe--publish-commands
 *
 * @example
 * eventOf(["message", "chat", "hello"]); // data: message,chat,hello
 */
export function eventOf(push: readonly (string | number)[]): Uint8Array {
  return encoder.encode(`data: ${push.join(",").replace(/\r\n|[\r\n]/g, "\ndata: ")}\n\n`);
}
