import { type Command, type Dialect, type Endpoint, withoutSecrets } from "../endpoints/endpoint.ts";
import { type ClientWay, sendThrough } from "../endpoints/hand-over.ts";
import { EndpointError } from "../errors/errors.ts";
import type { Link } from "./link.ts";

/** Options of an endpoint over a client with a socket. */
export interface SocketEndpointOptions {
  /** Default: the host and port that the client connects to. */
  readonly name?: string | undefined;
  /** Default: `upstash` if the host ends in `.upstash.io`, else `redis`. */
  readonly dialect?: Dialect | undefined;
}

export function sendOver(name: string, link: Link, call: ClientWay["call"]): Endpoint["send"] {
  const send = sendThrough(name, {
    room: link.room,
    whenReady: (signal) => link.whenReady(signal),
    call,
    errorOf: (error, command) => endpointErrorOf(name, error, command),
  });
  return async (command, signal, onSent) => {
    const reply = await send(command, signal, onSent);
    if (reply !== "QUEUED") return reply;
    // It may or may not be executed.
    const reason = "the client is within MULTI: give the endpoint its own client";
    throw new EndpointError(name, "malformed", reason);
  };
}

function endpointErrorOf(name: string, error: unknown, command: Command): EndpointError {
  const { message } = Object(error) as { message?: unknown };
  const said = withoutSecrets(String(message), command);
  // Redis's own errors begin with a word in capitals.
  if (/^[A-Z][A-Z0-9_]+( |$)/.test(said)) return new EndpointError(name, "redis", said);
  return new EndpointError(name, "network", `the command failed (${said})`);
}
