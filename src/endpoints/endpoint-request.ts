import { sendThrough } from "./batch.ts";
import type { Deadline } from "./deadline.ts";
import type { Command, Endpoint } from "./endpoint.ts";

/** Requests sent, and commands as Upstash bills them. */
export interface RequestCost {
  /** With parts of requests that commands of several operations share. */
  requests: number;
  commands: number;
}

/** The requests of one round to one endpoint, within a deadline. */
export interface EndpointRequest {
  readonly endpoint: Endpoint;
  readonly deadline: Deadline;
  readonly cost: RequestCost;
  /** How many commands were sent and may be executed; undefined: there is none yet. 0: it is certain that none is. */
  sent?: number;
  /** How many commands wait to be sent. Default 0. */
  waiting?: number;
  /** Whether a command was sent again because an endpoint had refused to take several. Default false. */
  isResent?: boolean;
  /** Whether its script is sent as text whatever the endpoint knows: perhaps nobody hears a NOSCRIPT. Default false. */
  sendsText?: boolean;
}

/** Sends one command. */
export function send(call: EndpointRequest, command: Command): Promise<unknown> {
  const { endpoint, deadline, cost } = call;
  let isCounted = false;
  call.sent ??= 0;
  call.waiting = (call.waiting ?? 0) + 1;
  return sendThrough(endpoint, command, deadline, (part) => {
    cost.requests += part;
    if (isCounted) {
      call.isResent = true;
      return;
    }
    isCounted = true;
    cost.commands += 1;
    call.sent! += 1;
    call.waiting! -= 1;
  });
}
