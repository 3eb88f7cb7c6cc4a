import type { EndpointErrorKind } from "../errors/errors.ts";
import type { Command, Endpoint } from "./endpoint.ts";

export interface Ask {
  readonly endpoint: Endpoint;
  /** Rejects if nobody waits any longer. */
  send(command: Command): Promise<unknown>;
}

export interface EndedRequest {
  readonly endpoint: string;
  /** Including other calls' commands. A script is one. */
  readonly commands: number;
  /** ms since it was sent. */
  readonly elapsed: number;
  /** Undefined: it was answered, perhaps with Redis's own error. */
  readonly failure: Exclude<EndpointErrorKind, "redis"> | undefined;
}
