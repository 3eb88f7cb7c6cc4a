import { Room } from "../endpoints/room.ts";
import { onAbort } from "../runtime/abort.ts";
import { stopwatch, systemRuntime } from "../runtime/runtime.ts";
import { Subscriber, type Subscription, type SubscriptionEvents } from "./subscriber.ts";

// Whether a client is connected. A command is handed over only then: in a client's own queue it would stay when its caller
// has long given up, and be executed after the next reconnect.

/** For so many ms after a connection broke, commands wait for the next one: most are rollbacks and releases. */
const patience = 1_000;

/** The part of Node's EventEmitter that clients are watched by. */
export interface Emitter {
  on(event: string, listener: (argument?: unknown) => void): unknown;
  off(event: string, listener: (argument?: unknown) => void): unknown;
  listenerCount(event: string): number;
}

/** The state of a client's connection. */
export interface LinkState {
  isReady(): boolean;
  /** Whether it will not connect by itself. */
  isClosed(): boolean;
  /** Connects a client that is to be connected by its first command. */
  connect?(): void;
  /** The event when it is connected. */
  readonly readyEvent: string;
  /** The event after a connection broke, and after each attempt that failed. */
  readonly brokenEvent: string;
}

interface Waiter {
  readonly resolve: () => void;
  readonly reject: () => void;
}

/**
 * Where a client keeps its link. The symbol is registered, so that a module that was loaded again, or a second copy of this
 * package, finds the link and adds no listeners of its own. The number stands for the public members of {@link Link}, which
 * copies of several versions share: raise it when one of these members changes. A copy with another number has a link of its
 * own beside the first one, and its listeners are added once.
 */
const linkKey = Symbol.for("redlock-edge.link.2");

/** The link of a client, which all its endpoints share. */
export function linkOf<Client extends object>(client: Client, make: (client: Client) => Link): Link {
  const owner = ownerOf(client) as Client & { readonly [linkKey]?: Link };
  const known = owner[linkKey];
  if (known) return known;
  const link = make(owner);
  // It is not enumerable, so no log of a client shows it, and no copy of a client has it.
  Object.defineProperty(owner, linkKey, { value: link });
  return link;
}

/**
 * The client itself, if this is a view of it: for `withTypeMapping` and the like, node-redis makes an object whose prototype
 * is the client, with the client's listeners.
 */
function ownerOf(client: object): object {
  const above = Object.getPrototypeOf(client) as object | null;
  // A class's prototype has its constructor.
  return !above || Object.hasOwn(above, "constructor") ? client : ownerOf(above);
}

/** The connection of a client, and its subscriptions. */
export class Link {
  readonly subscribe: Subscriber["subscribe"];
  readonly room: Room = new Room();
  readonly #client: Emitter;
  readonly #state: LinkState;
  readonly #waiting = new Set<Waiter>();
  readonly #inFlight = new Set<() => void>();
  readonly #noteError: (error: unknown) => void;
  /** Whether the last attempt to connect has failed. */
  #hasFailed = false;
  /** ms since the connection broke. Undefined: it stands, or there was none yet. */
  #brokenFor: (() => number) | undefined;
  #lastError: string | undefined;

  /** @param open makes a connection for subscriptions */
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
   * Waits until the client is connected. Undefined: it is. Rejects when it is closed, and while attempts to connect fail, as a
   * request to a server that is down does, but not in the first second after a connection broke.
   */
  whenReady(signal: AbortSignal): Promise<void> | undefined {
    if (this.#state.isReady()) return undefined;
    this.#state.connect?.();
    if (this.#isOffline || signal.aborted) return Promise.reject(this.#error());
    return new Promise((resolve, reject) => {
      // Where nobody else listens, the client prints its errors, or throws them: that must stay so.
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

  /** The result of a command, which fails when the connection breaks before: for a client that then forgets it. */
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

  /** Why a command is not sent. */
  #error(): Error {
    if (this.#state.isClosed()) return new Error("the client is closed, or was never connected");
    return new Error(`the client is not connected${this.#lastError ? `: ${this.#lastError}` : ""}`);
  }
}
