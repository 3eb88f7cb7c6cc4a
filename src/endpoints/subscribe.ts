import { EndpointError } from "../errors.ts";
import type { Endpoint } from "./endpoint.ts";
import { postOptions } from "./post-options.ts";

type Subscribe = NonNullable<Endpoint["subscribe"]>;

/** An endpoint that speaks the REST API. It has no `subscribe` yet, which only `pubSub` needs. */
export interface RestEndpoint extends Omit<Endpoint, "subscribe"> {
  /** A function, so that no log shows the token. */
  readonly restAccess: () => readonly [url: string, token: string];
}

/** How an endpoint's channels are subscribed to: its own way, or that of the REST API; undefined: it has no streams. */
export function subscribeOf(endpoint: Endpoint | RestEndpoint): Subscribe | undefined {
  if ("restAccess" in endpoint) return subscriber(endpoint.name, ...endpoint.restAccess());
  return endpoint.subscribe && ((channel, signal) => endpoint.subscribe!(channel, signal));
}

/** Subscribes by the REST API: a request whose response goes on. */
export function subscriber(name: string, url: string, token: string): Subscribe {
  const headers = { authorization: `Bearer ${token}`, accept: "text/event-stream" };
  return async (channel, signal) => {
    const href = `${url.replace(/\/$/, "")}/subscribe/${encodeURIComponent(channel)}`;
    const { status, body } = await fetch(href, postOptions(headers, signal, null));
    if (status === 200 && body) return body;
    // Workers count an unread body as an open connection.
    await body?.cancel();
    throw new EndpointError(name, "http", `HTTP ${status}, no stream`, { status });
  };
}
