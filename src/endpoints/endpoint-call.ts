import type { CallSignal } from "./call-signal.ts";
import type { Command, Endpoint } from "./endpoint.ts";
import { sendThrough } from "./transport.ts";

/** Requests sent, and commands as Upstash bills them. */
export interface RequestCost {
  /** Of a request that several operations share, each has a part. */
  requests: number;
  commands: number;
}

/** What one round asks of one endpoint: one command or several, until the round waits no longer. */
export interface EndpointCall {
  readonly endpoint: Endpoint;
  readonly signal: CallSignal;
  readonly cost: RequestCost;
  /** Whether the endpoint may execute it: false while it waits for room, and if it was dropped there. */
  isSent: boolean;
  /** Whether a command was sent again because an endpoint had refused to take several. */
  isResent: boolean;
  /** Whether its script is sent as text in any case, because a NOSCRIPT may get lost. */
  sendsText: boolean;
}

/** A call that has sent nothing yet. */
export function newCall(
  endpoint: Endpoint,
  signal: CallSignal,
  cost: RequestCost = { requests: 0, commands: 0 },
): EndpointCall {
  return {
    endpoint,
    signal,
    cost,
    isSent: false,
    isResent: false,
    sendsText: false,
  };
}

/** Sends one command. */
export function send(call: EndpointCall, command: Command): Promise<unknown> {
  const { endpoint, signal, cost } = call;
  let isCounted = false;
  return sendThrough(endpoint, command, signal, (part) => {
    cost.requests += part;
    if (isCounted) {
      call.isResent = true;
      return;
    }
    isCounted = true;
    cost.commands += 1;
    call.isSent = true;
  });
}
