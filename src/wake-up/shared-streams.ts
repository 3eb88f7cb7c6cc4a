import type { Endpoint } from "../endpoints/endpoint.ts";
import { type Runtime, sharesRequests } from "../runtime/runtime.ts";
import { ChannelStream } from "./stream.ts";

/** How many streams a Worker's request may open: half of the connections that it may have. */
const mostOnWorkers = 3;

/** How many requests are known. Nobody hears when a platform has ended one. */
const mostScopes = 100;

/**
 * The streams that may be shared: the streams of the process, or on Workers of a request, because streams that a request has
 * opened end with it.
 */
interface Scope {
  /** On Workers it belongs to the request that made it, like a stream. */
  readonly signal: AbortSignal;
  readonly streams: Set<ChannelStream>;
}

const scopes: Scope[] = [];

function isOurs({ signal }: Scope): boolean {
  try {
    return !signal.aborted;
  } catch {
    // "Cannot perform I/O on behalf of a different request."
    return false;
  }
}

/**
 * The stream of a channel at an endpoint, which the calls that may do so share.
 *
 * @returns undefined if another stream would leave a Worker's request too few connections
 */
export function sharedStream(
  endpoint: Endpoint,
  channel: string,
  context: { readonly runtime: Runtime; readonly timeout: number },
): ChannelStream | undefined {
  let scope = scopes.find(isOurs);
  if (!scope) {
    scope = { signal: new AbortController().signal, streams: new Set() };
    scopes.unshift(scope);
    scopes.splice(mostScopes);
  }
  const { streams } = scope;
  for (const stream of streams) {
    if (stream.endpoint === endpoint && stream.channel === channel) return stream;
  }
  if (streams.size >= mostOnWorkers && !sharesRequests()) return undefined;
  const stream = new ChannelStream(endpoint, channel, context, (ended) => streams.delete(ended));
  streams.add(stream);
  return stream;
}
