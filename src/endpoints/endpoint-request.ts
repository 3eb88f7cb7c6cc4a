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
  /** Whether its commands wait to be sent, and none was: then it is certain that none is executed. */
  isUnsent?: boolean;
  /** Whether a command was sent again because an endpoint had refused to take several. Default false. */
  isResent?: boolean;
}

/** Sends one command. */
export function send(call: EndpointRequest, command: Command): Promise<unknown> {
  const { endpoint, deadline, cost } = call;
  let isCounted = false;
  call.isUnsent ??= true;
  return sendThrough(endpoint, command, deadline, (part) => {
    call.isUnsent = false;
    cost.requests += part;
    if (isCounted) call.isResent = true;
    else cost.commands += 1;
    isCounted = true;
  });
}
