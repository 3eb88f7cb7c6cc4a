import { type EndpointErrorKind, isEndpointError } from "../errors.ts";

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

/** Measures the request that carries a command, from when it is sent to its end. */
export class RequestWatch {
  readonly #endpoint: string;
  readonly #now: () => number;
  readonly #hook: RequestHook;
  #commands = 0;
  #sentAt = 0;

  /** @param now a monotonic clock, in ms */
  constructor(endpoint: string, now: () => number, hook: RequestHook) {
    this.#endpoint = endpoint;
    this.#now = now;
    this.#hook = hook;
  }

  /** The command is sent, in a request that nobody else reports. */
  begin(commands: number): void {
    this.#commands = commands;
    this.#sentAt = this.#now();
  }

  /** Reports the request when the command has its reply. */
  async endWith(reply: Promise<unknown>): Promise<void> {
    try {
      await reply;
      this.#end(undefined);
    } catch (error) {
      // An endpoint of somebody else's making throws anything.
      const kind = isEndpointError(error) ? error.kind : "malformed";
      this.#end(kind === "redis" ? undefined : kind);
    }
  }

  #end(failure: EndedRequest["failure"]): void {
    const commands = this.#commands;
    // It was never sent, or another call reports its request.
    if (commands === 0) return;
    this.#commands = 0;
    this.#hook({ endpoint: this.#endpoint, commands, elapsed: this.#now() - this.#sentAt, failure });
  }
}
