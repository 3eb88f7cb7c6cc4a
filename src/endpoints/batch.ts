import { EndpointError } from "../errors.ts";
import { sharesRequests } from "../platform.ts";
import type { Deadline, Expiry } from "./deadline.ts";
import type { Command, Endpoint } from "./endpoint.ts";

// Sends together what is asked in one turn of the event loop, and has no more requests open than a platform allows. HTTP
// keeps no order, so nothing may rely on the order that the commands of one request have.

/** The most commands that one request carries. */
const maxCommands = 1_000;

/** The most bytes that the commands of one request have, unless a single one has more. */
const maxBytes = 512 * 1024;

/** Why a command has no reply that waited in the queue until its timeout. */
export const notSent = "not sent in time: no free connection";

/** Called when a command is sent. `part`: its part of the request, 1 / n where n commands share it. */
export type SentHook = (part: number) => void;

/** What became of one command: its reply, or why there is none. */
export type Outcome = { readonly reply: unknown } | { readonly error: EndpointError };

/** A command, and the same as JSON. */
export interface Encoded {
  readonly command: Command;
  readonly text: string;
}

/**
 * Sends commands as one request. Resolves with the outcome of each; undefined: the server takes one command at a time, and
 * has executed none of these.
 */
export type Post = (
  batch: readonly Encoded[],
  signal: AbortSignal,
) => Promise<readonly Outcome[] | undefined>;

/** A command, from the call to its reply. */
interface Pending extends Encoded {
  /** Aborts when its caller waits no longer. */
  readonly expiry: Expiry;
  readonly onSent: SentHook | undefined;
  readonly settle: (outcome: Outcome) => void;
}

/** Sends one command, and calls `onSent` then. */
export type Send = (command: Command, expiry: Expiry, onSent?: SentHook) => Promise<unknown>;

/** By an endpoint's function: the one that calls `onSent`. A wrapper around it is not among them. */
export const reporting: WeakMap<Endpoint["send"], Send> = new WeakMap();

/** Sends one command through an endpoint. One that does not say when it sends has sent it at once. */
export function sendThrough(
  endpoint: Endpoint,
  command: Command,
  deadline: Deadline,
  onSent: SentHook,
): Promise<unknown> {
  const send = reporting.get(endpoint.send);
  if (send) return send(command, deadline, onSent);
  // It may ignore its signal: what nobody waits for any more must not be executed after its rollback.
  if (deadline.aborted) return Promise.reject(new EndpointError(endpoint.name, "timeout", notSent));
  onSent(1);
  return endpoint.send(command, deadline.signal);
}

/**
 * A function that sends commands, those of one turn together. What still waits to be sent when its signal aborts is never
 * sent. A request is given up once none of those that share it waits any more; until then, its answer counts for all.
 *
 * @param name the endpoint's, for errors
 * @param maxRequests the most requests that are open at once
 */
export function batchingSend(name: string, maxRequests: number, post: Post): Endpoint["send"] {
  const batches = new Batches(name, maxRequests, post);
  const add: Send = (command, expiry, onSent) =>
    new Promise((resolve, reject) => {
      const settle = (outcome: Outcome) => {
        if ("error" in outcome) reject(outcome.error);
        else resolve(outcome.reply);
      };
      batches.add({ command, text: JSON.stringify(command), expiry, onSent, settle });
    });
  const send: Endpoint["send"] = (command, signal = new AbortController().signal) => add(command, signal);
  reporting.set(send, add);
  return send;
}

class Batches {
  readonly #name: string;
  readonly #maxRequests: number;
  readonly #post: Post;
  /** What waits to be sent, in the order of the calls. */
  readonly #queue = new Set<Pending>();
  #open = 0;
  #most = maxCommands;

  constructor(name: string, maxRequests: number, post: Post) {
    this.#name = name;
    this.#maxRequests = maxRequests;
    this.#post = post;
  }

  add(pending: Pending): void {
    this.#queue.add(pending);
    // On Workers each asks for it: should the platform drop what one request began, the next one does not wait for that.
    if (this.#queue.size === 1 || !sharesRequests()) queueMicrotask(() => this.#flush());
  }

  #flush(): void {
    // Where requests may not be shared, the platform itself queues what is too much: it knows whose request is whose.
    while (this.#queue.size > 0 && (this.#open < this.#maxRequests || !sharesRequests())) {
      const batch = this.#take();
      if (batch.length > 0) void this.#send(batch);
    }
  }

  /** The next commands that share a request. */
  #take(): Pending[] {
    const batch: Pending[] = [];
    let size = 0;
    for (const next of this.#queue) {
      // UTF-8 takes up to three bytes for a character of a string.
      size += next.text.length * (/[^\0-\x7f]/.test(next.text) ? 3 : 1);
      if (batch.length > 0 && (batch.length >= this.#most || size > maxBytes)) break;
      // First: what a Worker's request has left behind throws when another one looks at its signal.
      this.#queue.delete(next);
      if (next.expiry.aborted) next.settle({ error: new EndpointError(this.#name, "timeout", notSent) });
      else batch.push(next);
    }
    return batch;
  }

  async #send(batch: readonly Pending[]): Promise<void> {
    const controller = new AbortController();
    let isOpen = true;
    const close = () => {
      if (isOpen) this.#open -= 1;
      isOpen = false;
      this.#flush();
    };
    let first = 0;
    /** Watches the signal of the first one that still waits. */
    const watch = () => {
      while (batch[first]?.expiry.aborted) first += 1;
      const waiting = batch[first]?.expiry;
      if (waiting) return waiting.addEventListener("abort", watch);
      controller.abort();
      // Now, because `fetch` may not notice.
      close();
    };
    this.#open += 1;
    for (const { onSent } of batch) onSent?.(1 / batch.length);
    watch();
    const outcomes = await this.#post(batch, controller.signal);
    batch[first]?.expiry.removeEventListener("abort", watch);
    if (!outcomes) this.#most = 1;
    batch.forEach((pending, index) => {
      if (outcomes) pending.settle(outcomes[index]!);
      else this.#queue.add(pending);
    });
    close();
  }
}
