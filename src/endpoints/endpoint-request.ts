import type { Command, Endpoint } from "./endpoint.ts";

/** Requests sent, and commands as Upstash bills them. */
export interface RequestCost {
  requests: number;
  commands: number;
}

/** The requests of one round to one endpoint, within a deadline that `signal` ends. */
export interface EndpointRequest {
  readonly endpoint: Endpoint;
  readonly signal: AbortSignal;
  readonly cost: RequestCost;
}

/** Sends one command. */
export function send(call: EndpointRequest, command: Command): Promise<unknown> {
  call.cost.requests += 1;
  call.cost.commands += 1;
  return call.endpoint.send(command, call.signal);
}
