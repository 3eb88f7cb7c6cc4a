import type { CallSignal } from "../endpoints/call-signal.ts";
import { type Command, type Dialect, type Endpoint, withoutSecrets } from "../endpoints/endpoint.ts";
import { givenUp } from "../endpoints/hand-over.ts";
import { asSend, notSent, type Transport } from "../endpoints/transport.ts";
import { EndpointError } from "../errors.ts";
import type { Link } from "./link.ts";

/** Options for an endpoint over a client with a socket. */
export interface SocketEndpointOptions {
  /** Default: the host and port that the client connects to. */
  readonly name?: string | undefined;
  /** Default: `upstash` when the client's host ends in `.upstash.io`, else `redis`. */
  readonly dialect?: Dialect | undefined;
}

/** Calls a client, which is connected. */
type CallClient = (command: readonly string[], signal: CallSignal) => Promise<unknown>;

/** A function that sends commands through a client as soon as its link stands, and there is room for them. */
export function sendOver(name: string, link: Link, call: CallClient): Endpoint["send"] {
  const unsentReason = () => (link.isReady ? notSent : `not sent in time: ${link.reason}`);
  const send: Transport["send"] = async (command, signal, onSent) => {
    let isSent = false;
    try {
      const reply = await link.handOver.run(signal, async (onHandedOver) => {
        for (let wait = link.whenReady(signal); wait; wait = link.whenReady(signal)) await wait;
        if (signal.aborted) throw givenUp();
        isSent = true;
        onHandedOver();
        onSent?.(1);
        // Not given up at the timeout: what is executed late must be known, to be rolled back.
        return call(command.map(String), signal);
      });
      if (reply !== "QUEUED") return reply;
    } catch (error) {
      if (!isSent && signal.aborted) throw new EndpointError(name, "timeout", unsentReason());
      // Not set as the cause: a client's error may have the command with its tokens.
      throw endpointErrorOf(name, error, command);
    }
    // Whether it will be executed is not known.
    throw new EndpointError(
      name,
      "malformed",
      "the client is inside of MULTI: give the endpoint its own client",
    );
  };
  return asSend({ send, hearsLate: true, unsentReason });
}

function endpointErrorOf(name: string, error: unknown, command: Command): EndpointError {
  const { message } = Object(error) as { message?: unknown };
  const said = withoutSecrets(String(message), command);
  // Redis's own errors begin with a word in capitals. Clients do not say it otherwise.
  if (/^[A-Z][A-Z0-9_]+( |$)/.test(said)) return new EndpointError(name, "redis", said);
  return new EndpointError(name, "network", `the command failed (${said})`);
}
