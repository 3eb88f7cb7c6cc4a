import type { Endpoint } from "../../endpoints/endpoint.ts";
import { sharesRequests } from "../../platform.ts";
import { ChannelStream, type StreamContext } from "./channel-stream.ts";

// Calls that wait for one channel at one endpoint share a stream. On Workers only those of one request may: what a request
// has opened ends with it, and must not be used by another.

/** How many streams a Worker's request may open: half of the connections that it may wait for at the same time. */
const mostOnWorkers = 3;

/** How many requests are known. Those that a platform has ended are never heard of again. */
const mostScopes = 100;

/** The streams that may share: those of a request, or, elsewhere, of the process. The latest is the first. */
const scopes: StreamScope[] = [];

class StreamScope {
  readonly #streams = new WeakMap<Endpoint, Map<string, ChannelStream>>();
  /** On Workers, it belongs to the request that made it, like a stream. */
  readonly #signal = new AbortController().signal;
  #count = 0;

  /** Whether what was opened in it may be used now. */
  get isOurs(): boolean {
    try {
      return !this.#signal.aborted;
    } catch {
      // "Cannot perform I/O on behalf of a different request."
      return false;
    }
  }

  open(endpoint: Endpoint, channel: string, context: StreamContext): ChannelStream | undefined {
    const streams = this.#streams.get(endpoint) ?? new Map<string, ChannelStream>();
    const known = streams.get(channel);
    if (known || (this.#count >= mostOnWorkers && !sharesRequests())) return known;
    this.#streams.set(endpoint, streams);
    const stream: ChannelStream = new ChannelStream(endpoint, channel, context, () => {
      if (streams.get(channel) !== stream) return;
      streams.delete(channel);
      this.#count -= 1;
      if (this.#count === 0) scopes.splice(scopes.indexOf(this) >>> 0, 1);
    });
    streams.set(channel, stream);
    this.#count += 1;
    return stream;
  }
}

/**
 * The stream of a channel, which the calls that may do so share.
 *
 * @returns undefined where another stream would leave too few connections for requests
 */
export function sharedStream(
  endpoint: Endpoint,
  channel: string,
  context: StreamContext,
): ChannelStream | undefined {
  let scope = scopes.find(({ isOurs }) => isOurs);
  if (!scope) {
    scope = new StreamScope();
    scopes.unshift(scope);
    scopes.splice(mostScopes);
  }
  return scope.open(endpoint, channel, context);
}
