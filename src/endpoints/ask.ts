import type { EndpointErrorKind } from "../errors/errors.ts";
import type { Command, Endpoint } from "./endpoint.ts";

/** A question to one endpoint: one command or several. */
export interface Ask {
  readonly endpoint: Endpoint;
  /** Sends one command. Rejects if nobody waits any longer. */
  send(command: Command): Promise<unknown>;
}

/** A request to an endpoint that has ended. */
export interface EndedRequest {
  readonly endpoint: string;
  /** How many commands it carried, including commands of other calls. A script is one command, whatever it executes. */
  readonly commands: number;
  /** ms since it was sent. */
  readonly elapsed: number;
  /** Why it has no answer. Undefined: it was answered. Redis's own error to a command is an answer, too. */
  readonly failure: Exclude<EndpointErrorKind, "redis"> | undefined;
}
