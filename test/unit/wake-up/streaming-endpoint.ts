import type { Endpoint } from "../../../src/endpoints/endpoint.ts";
import type { Settings } from "../../../src/lock/options.ts";
import type { WakeUpPause } from "../../../src/lock/wake-up.ts";
import type { ChannelListener } from "../../../src/wake-up/listener.ts";
import type { SteppingRuntime } from "../../support/stepping-runtime.ts";

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
export function settingsOf(runtime: SteppingRuntime, endpoints: readonly Endpoint[]): Settings {
  return { endpoints, runtime, timeout: 1_000, prefix: "p" } as unknown as Settings;
}

/** A round of 100 ms that all endpoints have refused. */
export function refusedBy(endpoints: readonly Endpoint[]): WakeUpPause["round"] {
  const calls = endpoints.map((endpoint) => ({
    endpoint,
    answer: { outcome: "held" },
    settled: Promise.resolve(),
  }));
  return { calls, elapsed: () => 100, done: Promise.resolve() } as unknown as WakeUpPause["round"];
}

/**
 * Begins to wait after such a round. Without messages and polls the pause lasts 1 500 ms.
 *
 * @returns how many ms the pause lasted, when it is over
 */
export async function pauseOf(
  runtime: SteppingRuntime,
  listener: ChannelListener,
  round: WakeUpPause["round"],
  pause: Partial<WakeUpPause> = {},
): Promise<number> {
  const began = runtime.monotonic();
  await listener.wait({ round, poll: 10_000, longest: 20_000, signal: undefined, ...pause });
  return runtime.monotonic() - began;
}
