import type { Commands } from "./command.ts";
import { globMatcher } from "./glob.ts";

/** Which names a subscription has: of channels, or patterns of them. */
export type SubscriptionKind = "channels" | "patterns";

/**
 * What Redis pushes to a subscriber: `subscribe` (or `psubscribe`), the name and how many names it has now; `message`, the
 * channel and the payload; `pmessage`, the pattern, the channel and the payload. Strings are byte strings (see bytes.ts).
 */
export type Push = readonly (string | number)[];

type Receive = (push: Push) => void;

/** The subscribers of one engine, by channel and by pattern. */
export class PubSub {
  readonly #subscribers: Readonly<Record<SubscriptionKind, Map<string, Set<Receive>>>> = {
    channels: new Map(),
    patterns: new Map(),
  };

  /** Commands that send to the subscribers. */
  readonly commands: Commands = {
    PUBLISH: { arity: 3, run: (_space, [channel, payload]) => this.#publish(channel!, payload!) },
  };

  /** The subcommands of PUBSUB. */
  readonly subcommands: Commands = {
    CHANNELS: {
      arity: -2,
      run: (_space, [, pattern = "*"]) => [...this.#subscribers.channels.keys()].filter(globMatcher(pattern)),
    },
    NUMSUB: {
      arity: -2,
      run: (_space, [, ...channels]) =>
        channels.flatMap((channel) => [channel, this.#subscribers.channels.get(channel)?.size ?? 0]),
    },
    NUMPAT: { arity: 2, run: () => this.#subscribers.patterns.size },
  };

  /**
   * Adds a subscriber and returns a function that removes it. The confirmations are pushed before it returns. `receive` is
   * called while a command or a script runs, so it must not execute commands itself.
   */
  subscribe(kind: SubscriptionKind, names: readonly string[], receive: Receive): () => void {
    const subscribers = this.#subscribers[kind];
    // A function of its own, so that the same `receive` may subscribe more than once.
    const own: Receive = (push) => receive(push);
    const confirmed = new Set<string>();
    for (const name of names) {
      if (!subscribers.has(name)) subscribers.set(name, new Set());
      subscribers.get(name)!.add(own);
      confirmed.add(name);
      receive([kind === "channels" ? "subscribe" : "psubscribe", name, confirmed.size]);
    }
    return () => {
      for (const name of confirmed) {
        subscribers.get(name)?.delete(own);
        if (subscribers.get(name)?.size === 0) subscribers.delete(name);
      }
    };
  }

  /** Returns how many deliveries there were: a subscriber by channel and by pattern counts twice, as in Redis. */
  #publish(channel: string, payload: string): number {
    const { channels, patterns } = this.#subscribers;
    let delivered = 0;
    for (const receive of channels.get(channel) ?? []) {
      receive(["message", channel, payload]);
      delivered++;
    }
    for (const [pattern, receivers] of patterns) {
      if (!globMatcher(pattern)(channel)) continue;
      for (const receive of receivers) {
        receive(["pmessage", pattern, channel, payload]);
        delivered++;
      }
    }
    return delivered;
  }
}
