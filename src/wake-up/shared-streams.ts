import type { Endpoint } from "../endpoints/endpoint.ts";
import { type Runtime, sharesRequests } from "../runtime/runtime.ts";
import { ChannelStream } from "./stream.ts";

/** Of a Worker's invocation: half of its connections. */
const mostOnWorkers = 3;

/** Nobody hears when a platform has ended one. */
const mostScopes = 100;

/** The process, or on Workers an invocation, because its streams end with it. */
interface Scope {
  /** On Workers only its own invocation may use it. */
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

/** @returns undefined if a Worker's invocation would have too few connections left */
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
