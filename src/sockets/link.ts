import { Room } from "../endpoints/room.ts";
import { onAbort } from "../runtime/abort.ts";
import { stopwatch, systemRuntime } from "../runtime/runtime.ts";
import { Subscriber, type Subscription, type SubscriptionEvents } from "./subscriber.ts";

// A command is handed over only while the client is connected. In the client's own queue it would outlive its caller,
// and be executed after the next reconnect.

/** In ms. After a connection broke, commands wait for the next one, because most are rollbacks and releases. */
const patience = 1_000;

export interface Emitter {
  on(event: string, listener: (argument?: unknown) => void): unknown;
  off(event: string, listener: (argument?: unknown) => void): unknown;
  listenerCount(event: string): number;
}

export interface LinkState {
  isReady(): boolean;
  /** It will not connect by itself. */
  isClosed(): boolean;
  connect?(): void;
  readonly readyEvent: string;
  /** After a connection broke, and after each failed attempt. */
  readonly brokenEvent: string;
}

interface Waiter {
  readonly resolve: () => void;
  readonly reject: () => void;
}

/**
 * Registered, so that a second copy of this package finds the link and adds no listeners. Raise the number when a
 * public member of {@link Link} changes.
 */
const linkKey = Symbol.for("redlock-edge.link.2");

export function linkOf<Client extends object>(client: Client, make: (client: Client) => Link): Link {
  const owner = ownerOf(client) as Client & { readonly [linkKey]?: Link };
  const known = owner[linkKey];
  if (known) return known;
  const link = make(owner);
  // Not enumerable, so no log shows it, and no copy of a client has it.
  Object.defineProperty(owner, linkKey, { value: link });
  return link;
}

/** For `withTypeMapping`, node-redis makes a view whose prototype is the client, with the client's listeners. */
function ownerOf(client: object): object {
  const above = Object.getPrototypeOf(client) as object | null;
  // A class's prototype has its constructor.
  return !above || Object.hasOwn(above, "constructor") ? client : ownerOf(above);
}

export class Link {
  readonly subscribe: Subscriber["subscribe"];
  readonly room: Room = new Room();
  readonly #client: Emitter;
  readonly #state: LinkState;
  readonly #waiting = new Set<Waiter>();
  readonly #inFlight = new Set<() => void>();
  readonly #noteError: (error: unknown) => void;
  #hasFailed = false;
  /** In ms. Undefined: the connection stands, or there was none yet. */
  #brokenFor: (() => number) | undefined;
  #lastError: string | undefined;

  constructor(client: Emitter, state: LinkState, open: (events: SubscriptionEvents) => Subscription) {
    this.subscribe = new Subscriber(open).subscribe;
    this.#client = client;
    this.#state = state;
    this.#noteError = (error) => {
      const { code, message } = Object(error) as { code?: unknown; message?: unknown };
      this.#lastError = String(code ?? message);
    };
    let wasReady = state.isReady();
    client.on(state.readyEvent, () => {
      wasReady = true;
      this.#hasFailed = false;
      this.#brokenFor = undefined;
      this.#lastError = undefined;
      for (const { resolve } of this.#waiting) resolve();
    });
    client.on(state.brokenEvent, () => {
      if (wasReady) this.#brokenFor = stopwatch(systemRuntime);
      else this.#hasFailed = true;
      wasReady = false;
      for (const fail of this.#inFlight) fail();
      if (this.#isOffline) this.#fail();
    });
    client.on("end", () => this.#fail());
  }

  /**
   * Undefined: it is connected. Rejects if it is closed, and while attempts to connect fail, but not in the first
   * second after a connection broke.
   */
  whenReady(signal: AbortSignal): Promise<void> | undefined {
    if (this.#state.isReady()) return undefined;
    this.#state.connect?.();
    if (this.#isOffline || signal.aborted) return Promise.reject(this.#error());
    return new Promise((resolve, reject) => {
      // If nobody else listens, the client prints or throws its errors, and that must stay so.
      if (this.#waiting.size === 0 && this.#client.listenerCount("error") > 0) {
        this.#client.on("error", this.#noteError);
      }
      const end = (settle: () => void) => () => {
        this.#waiting.delete(waiter);
        if (this.#waiting.size === 0) this.#client.off("error", this.#noteError);
        ignoreAbort();
        settle();
      };
      const waiter: Waiter = { resolve: end(resolve), reject: end(() => reject(this.#error())) };
      this.#waiting.add(waiter);
      const ignoreAbort = onAbort(signal, waiter.reject);
    });
  }

  /** For a client that forgets its commands when the connection breaks. */
  whileConnected<Value>(result: Promise<Value>): Promise<Value> {
    return new Promise((resolve, reject) => {
      const fail = () => reject(new Error("the connection broke"));
      this.#inFlight.add(fail);
      void result.then(resolve, reject).finally(() => this.#inFlight.delete(fail));
    });
  }

  get #isOffline(): boolean {
    if (this.#state.isClosed()) return true;
    return this.#hasFailed && !(this.#brokenFor && this.#brokenFor() < patience);
  }

  #fail(): void {
    for (const { reject } of this.#waiting) reject();
  }

  #error(): Error {
    if (this.#state.isClosed()) return new Error("the client is closed, or was never connected");
    return new Error(`the client is not connected: ${this.#lastError ?? 'its event "error" says why'}`);
  }
}
