import type { Endpoint } from "../../../../src/endpoints/endpoint.ts";
import type { Settings } from "../../../../src/lock/options.ts";
import type { ChannelListener } from "../../../../src/lock/wake-up/channel-listener.ts";
import type { WakeUpPause } from "../../../../src/lock/wake-up/wake-up.ts";
import type { SteppingRuntime } from "../../../support/stepping-runtime.ts";

/** A subscription, as the endpoint sees it. */
export interface Subscription {
  readonly channel: string;
  readonly signal: AbortSignal;
  /** Whether the client has given up the stream's body. */
  readonly isCancelled: boolean;
  /** Sends a line. */
  send(line: string): void;
  end(): void;
}

/** An endpoint that has nothing but streams. It ignores their signals, as a careless one may. */
export interface StreamingEndpoint extends Endpoint {
  readonly subscriptions: readonly Subscription[];
}

export function streamingEndpoint(): StreamingEndpoint {
  const subscriptions: Subscription[] = [];
  return {
    name: "streams",
    dialect: "redis",
    subscriptions,
    send: () => Promise.reject(new Error("only streams")),
    subscribe(channel, signal) {
      let isCancelled = false;
      let body!: ReadableStreamDefaultController<Uint8Array>;
      const stream = new ReadableStream<Uint8Array>({
        start: (controller) => {
          body = controller;
        },
        cancel: () => {
          isCancelled = true;
        },
      });
      subscriptions.push({
        channel,
        signal,
        get isCancelled() {
          return isCancelled;
        },
        send: (line) => body.enqueue(new TextEncoder().encode(`${line}\n`)),
        end: () => body.close(),
      });
      return Promise.resolve(stream);
    },
  };
}

/** What a listener needs of a client's settings. */
export function settingsOf(
  runtime: SteppingRuntime,
  endpoints: readonly Endpoint[],
  more: Partial<Settings> = {},
): Settings {
  return { endpoints, runtime, timeout: 1_000, latencies: new Map(), ...more } as Settings;
}

/**
 * Begins to wait after a round of 100 ms. A slot is 150 ms; without messages and polls the pause lasts 2 500 ms.
 *
 * @returns how many ms the pause lasted, when it is over
 */
export async function pauseOf(
  runtime: SteppingRuntime,
  listener: ChannelListener,
  pause: Partial<WakeUpPause> = {},
): Promise<number> {
  const began = runtime.monotonic();
  const round = { calls: [], elapsed: () => 100 };
  const defaults = { round, poll: 10_000, longest: 20_000, signal: undefined };
  await listener.wait({ ...defaults, ...pause });
  return runtime.monotonic() - began;
}
