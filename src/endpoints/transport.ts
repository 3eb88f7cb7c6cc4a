import { EndpointError } from "../errors.ts";
import { type CallSignal, withCallSignal } from "./call-signal.ts";
import type { Command, Endpoint } from "./endpoint.ts";

// What this package's own endpoints know beside what `Endpoint` shows. A user's wrapper around one of them has none of it.

/** Why a command was not sent that waited until its timeout. */
export const notSent = "not sent in time: others were sent first, or there is no connection";

/**
 * Called when a command is sent.
 *
 * @param commands how many commands its request carries; 0: another one of them reports the request
 * @returns whether this one reports the request
 */
export type SentHook = (commands: number) => boolean;

/** How commands reach a server. */
export interface Transport {
  /** Sends one command, and calls `onSent` then. */
  send(command: Command, signal: CallSignal, onSent?: SentHook): Promise<unknown>;
  /** Why a command still waits to be sent. Default: {@link notSent}. */
  unsentReason?(): string;
  /** Whether a reply is heard even after its timeout. Default false. */
  readonly hearsLate?: boolean;
  /** What is known of its server. Default: nothing is known but of this endpoint. */
  readonly server?: ServerFacts;
}

/** What calls have learnt of a server. */
export interface ServerFacts {
  /** The scripts whose text was sent to it. */
  readonly scripts: Set<object>;
  /** Whether it has deleted for this process as a release does. False: it has refused that. Undefined: not known. */
  releases: boolean | undefined;
  /** Whether it has shown that it does not know NX together with GET. */
  lacksNxGet: boolean;
  /** Whether it has returned a value in the way, as a gateway that answers null to everything does not. */
  returnsValues: boolean;
}

const nothingKnown = (): ServerFacts => ({
  scripts: new Set(),
  releases: undefined,
  lacksNxGet: false,
  returnsValues: false,
});

/** By an endpoint's function, which copies of the endpoint have, too. */
const transports = new WeakMap<Endpoint["send"], Transport>();

/** The `send` of an endpoint that commands reach by this transport. */
export function asSend(transport: Transport): Endpoint["send"] {
  const send: Endpoint["send"] = (command, signal = new AbortController().signal) =>
    withCallSignal(signal, (own) => transport.send(command, own));
  transports.set(send, transport);
  return send;
}

/** The transport of an endpoint; undefined: a user has made it. */
export function transportOf({ send }: Endpoint): Transport | undefined {
  return transports.get(send);
}

/** Sends one command through an endpoint. An endpoint that does not say when it sends is taken to send at once. */
export function sendThrough(
  endpoint: Endpoint,
  command: Command,
  signal: CallSignal,
  onSent: SentHook,
): Promise<unknown> {
  const transport = transportOf(endpoint);
  if (transport) return transport.send(command, signal, onSent);
  // Such an endpoint may ignore its signal, and what nobody waits for any more must not be executed after its rollback.
  if (signal.aborted) return Promise.reject(new EndpointError(endpoint.name, "timeout", notSent));
  onSent(1);
  return endpoint.send(command, signal.abortSignal);
}

/** Whether the reply of an endpoint is heard even after its timeout. */
export function hearsLate(endpoint: Endpoint): boolean {
  return transportOf(endpoint)?.hearsLate ?? false;
}

/** Why a command still waits to be sent to an endpoint. */
export function unsentReason(endpoint: Endpoint): string {
  return transportOf(endpoint)?.unsentReason?.() ?? notSent;
}

/** Of endpoints whose transport does not say it. */
const facts = new WeakMap<Endpoint, ServerFacts>();

/** What is known of an endpoint's server. */
export function serverOf(endpoint: Endpoint): ServerFacts {
  const shared = transportOf(endpoint)?.server;
  if (shared) return shared;
  const own = facts.get(endpoint) ?? nothingKnown();
  facts.set(endpoint, own);
  return own;
}

/** By address and token. */
const servers = new Map<string, ServerFacts>();

/** More servers than one process has; beyond it, what is known of them is forgotten, and learnt again. */
const mostServers = 1_000;

/** What is known of the server at an address: on Workers, each request makes clients of its own for the same one. */
export function serverAt(href: string, token: string): ServerFacts {
  const address = `${href} ${token}`;
  const server = servers.get(address) ?? nothingKnown();
  if (servers.size >= mostServers && !servers.has(address)) servers.clear();
  servers.set(address, server);
  return server;
}
