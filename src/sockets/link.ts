import type { Expiry } from "../endpoints/deadline.ts";

// Whether a client is connected. A command is handed over only then: in a client's own queue it would stay when its caller
// has long given up, and be executed after the next reconnect.

/** The part of Node's EventEmitter that clients are watched by. */
export interface Emitter {
  on(event: string, listener: (argument?: unknown) => void): unknown;
  off(event: string, listener: (argument?: unknown) => void): unknown;
  listenerCount(event: string): number;
}

/** What a client says about its connection. */
export interface LinkState {
  isReady(): boolean;
  /** Whether it will not connect by itself. */
  isClosed(): boolean;
  /** Connects a client that is to be connected by its first command. */
  connect?(): void;
  /** The event after a connection broke, and after each attempt that failed. */
  readonly brokenEvent: string;
}

interface Waiter {
  readonly resolve: () => void;
  readonly reject: () => void;
}

/** The connection of a client. */
export class Link {
  readonly #client: Emitter;
  readonly #state: LinkState;
  readonly #waiting = new Set<Waiter>();
  readonly #inFlight = new Set<() => void>();
  /** Connections that broke or failed since the last one stood. */
  #failures = 1;
  #lastError: string | undefined;

  constructor(client: Emitter, state: LinkState) {
    this.#client = client;
    this.#state = state;
    if (state.isReady()) this.#failures = 0;
    client.on("ready", () => {
      this.#failures = 0;
      this.#lastError = undefined;
      for (const { resolve } of this.#waiting) resolve();
    });
    client.on(state.brokenEvent, () => {
      this.#failures += 1;
      for (const fail of this.#inFlight) fail();
      if (this.#isOffline) this.#fail();
    });
    client.on("end", () => this.#fail());
  }

  /**
   * Waits until the client is connected; undefined: it is. Rejects when it is closed, when the next attempt to connect fails,
   * and at once while the last one has failed: then this fails as a request to a server that is down does. A connection
   * that has just broken may stand again in a moment.
   */
  whenReady(expiry: Expiry): Promise<void> | undefined {
    if (this.#state.isReady()) return undefined;
    this.#state.connect?.();
    if (this.#isOffline || expiry.aborted) return Promise.reject(this.#error());
    return new Promise((resolve, reject) => {
      const noteError = (error: unknown) => {
        const { code, message } = Object(error) as { code?: unknown; message?: unknown };
        this.#lastError = String(code ?? message);
      };
      // Where nobody else listens, the client prints its errors, or throws them: that must stay so.
      if (this.#client.listenerCount("error") > 0) this.#client.on("error", noteError);
      const end = (settle: () => void) => () => {
        this.#waiting.delete(waiter);
        this.#client.off("error", noteError);
        expiry.removeEventListener("abort", waiter.reject);
        settle();
      };
      const waiter: Waiter = { resolve: end(resolve), reject: end(() => reject(this.#error())) };
      this.#waiting.add(waiter);
      expiry.addEventListener("abort", waiter.reject);
    });
  }

  /** The result of a command, which fails when the connection breaks before: for a client that then forgets it. */
  whileConnected<Value>(result: Promise<Value>): Promise<Value> {
    return new Promise((resolve, reject) => {
      const fail = () => reject(new Error("the connection broke"));
      this.#inFlight.add(fail);
      void result.then(resolve, reject).finally(() => this.#inFlight.delete(fail));
    });
  }

  get #isOffline(): boolean {
    return this.#failures > 1 || this.#state.isClosed();
  }

  #fail(): void {
    for (const { reject } of this.#waiting) reject();
  }

  #error(): Error {
    if (this.#state.isClosed()) return new Error("the client is closed");
    return new Error(`not connected${this.#lastError ? `: ${this.#lastError}` : ""}`);
  }
}
