import type { Endpoint } from "../endpoints/endpoint.ts";

export interface Subscription {
  subscribe(channel: string): Promise<unknown>;
  unsubscribe(channel: string): Promise<unknown>;
  close(): void;
}

export interface SubscriptionEvents {
  onMessage(channel: string, text: string): void;
  /** It does not connect again. */
  onEnd(): void;
}

interface Listener {
  write(event: string): void;
  end(): void;
}

interface Channel {
  readonly isSubscribed: Promise<unknown>;
  readonly listeners: Set<Listener>;
}

/** A connection of its own. When it breaks, all streams end, and waiters poll until they subscribe again. */
export class Subscriber {
  readonly #open: (events: SubscriptionEvents) => Subscription;
  readonly #channels = new Map<string, Channel>();
  #connection: Subscription | undefined;

  constructor(open: (events: SubscriptionEvents) => Subscription) {
    this.#open = open;
  }

  readonly subscribe: NonNullable<Endpoint["subscribe"]> = async (name, signal) => {
    signal.throwIfAborted();
    const encoder = new TextEncoder();
    let listener!: Listener;
    const leave = () => {
      signal.removeEventListener("abort", listener.end);
      this.#leave(name, listener);
    };
    const stream = new ReadableStream<Uint8Array>({
      start(controller) {
        listener = {
          write: (event) => controller.enqueue(encoder.encode(`data: ${event}\n\n`)),
          end() {
            leave();
            controller.close();
          },
        };
      },
      cancel: leave,
    });
    signal.addEventListener("abort", listener.end);
    const channel = this.#channels.get(name) ?? this.#join(name);
    channel.listeners.add(listener);
    try {
      await channel.isSubscribed;
    } catch (error) {
      leave();
      throw error;
    }
    if (channel.listeners.has(listener)) listener.write(`subscribe,${name},1`);
    return stream;
  };

  #join(name: string): Channel {
    this.#connection ??= this.#connect();
    const channel = { isSubscribed: this.#connection.subscribe(name), listeners: new Set<Listener>() };
    this.#channels.set(name, channel);
    return channel;
  }

  #connect(): Subscription {
    const connection: Subscription = this.#open({
      onMessage: (name, text) => {
        for (const { write } of this.#channels.get(name)?.listeners ?? []) write(`message,${name},${text}`);
      },
      onEnd: () => {
        if (this.#connection !== connection) return;
        this.#connection = undefined;
        const channels = [...this.#channels.values()];
        this.#channels.clear();
        for (const listener of channels.flatMap(({ listeners }) => [...listeners])) listener.end();
      },
    });
    return connection;
  }

  #leave(name: string, listener: Listener): void {
    const channel = this.#channels.get(name);
    if (!channel?.listeners.delete(listener) || channel.listeners.size > 0) return;
    this.#channels.delete(name);
    const connection = this.#connection;
    if (this.#channels.size > 0) {
      // The streams end anyway.
      connection?.unsubscribe(name).catch(() => undefined);
    } else {
      this.#connection = undefined;
      connection?.close();
    }
  }
}
