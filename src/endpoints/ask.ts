import type { EndpointError, EndpointErrorKind } from "../errors.ts";
import type { Command, Endpoint } from "./endpoint.ts";

/** What is asked of one endpoint: one command or several. */
export interface Ask {
  readonly endpoint: Endpoint;
  /** Sends one command. Rejects if nobody waits any longer. */
  send(command: Command): Promise<unknown>;
}

/** A request to an endpoint that has ended. */
export interface EndedRequest {
  readonly endpoint: string;
  /** How many commands it carried, those of other calls included. A script is one command, whatever it executes. */
  readonly commands: number;
  /** ms since it was sent. */
  readonly elapsed: number;
  /** Why it has no answer. Undefined: it was answered; Redis's own error to a command is an answer, too. */
  readonly failure: Exclude<EndpointErrorKind, "redis"> | undefined;
}

/** Receives each request once, even if several calls share it. */
export type RequestHook = (request: EndedRequest) => void;

/** The request of one command, from when it leaves to its end. */
export interface RequestWatch {
  /** See `Endpoint.send`. */
  onSent(commands: number): void;
  /** Reports the request, unless nothing was sent or another command reports it. */
  end(error?: EndpointError): void;
}

/** Watches the request of one command. `now`: a monotonic clock, in ms. */
export function watchRequest(endpoint: string, now: () => number, hook: RequestHook): RequestWatch {
  let commands = 1;
  let sentAt = now();
  return {
    onSent(count) {
      commands = count;
      sentAt = now();
    },
    end(error) {
      if (commands === 0 || error?.unsent) return;
      const failure = error && error.kind !== "redis" ? error.kind : undefined;
      hook({ endpoint, commands, elapsed: now() - sentAt, failure });
    },
  };
}
