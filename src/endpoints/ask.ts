import type { CallSignal } from "./call-signal.ts";
import type { Command, Endpoint } from "./endpoint.ts";
import { type RequestHook, RequestWatch } from "./request-watch.ts";
import { sendThrough } from "./transport.ts";

/** What one round asks of one endpoint: one command or several, until the round waits no longer. */
export interface EndpointCall {
  readonly endpoint: Endpoint;
  readonly signal: CallSignal;
  /** Called for every request that has ended. */
  readonly onRequest: RequestHook | undefined;
  /** Whether the endpoint may execute it: false while it waits for room, and if it was dropped there. */
  isSent: boolean;
  /** Whether its script is sent as text in any case, because a NOSCRIPT may get lost. */
  sendsText: boolean;
}

/** A call that has sent nothing yet. */
export function newCall(
  endpoint: Endpoint,
  signal: CallSignal,
  onRequest?: RequestHook | undefined,
): EndpointCall {
  return {
    endpoint,
    signal,
    onRequest,
    isSent: false,
    sendsText: false,
  };
}

/** Sends one command. */
export function send(call: EndpointCall, command: Command): Promise<unknown> {
  const { endpoint, signal, onRequest } = call;
  const watch = onRequest && new RequestWatch(endpoint.name, signal.now, onRequest);
  const reply = sendThrough(endpoint, command, signal, (commands) => {
    call.isSent = true;
    if (commands > 0) watch?.begin(commands);
    return watch !== undefined;
  });
  void watch?.endWith(reply);
  return reply;
}
