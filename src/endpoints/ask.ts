import type { EndpointErrorKind } from "../errors/errors.ts";
import type { Command, Endpoint } from "./endpoint.ts";

export interface Ask {
  readonly endpoint: Endpoint;
  send(command: Command): Promise<unknown>;
}

export interface EndedRequest {
  readonly endpoint: string;
  /** Including other calls' commands. */
  readonly commands: number;
  /** ms since it was sent. */
  readonly elapsed: number;
  /** Undefined: it was answered. */
  readonly failure: Exclude<EndpointErrorKind, "redis"> | undefined;
}
