import { EndpointError } from "../errors.ts";
import { sharesRequests } from "../platform.ts";
import type { CallSignal } from "./call-signal.ts";
import type { Command, Endpoint } from "./endpoint.ts";
import { asSend, notSent, type SentHook, type ServerFacts } from "./transport.ts";
import { afterAnswer, afterTimeout, early, initialWindow, type Window } from "./window.ts";

// Commands of one turn of the event loop are sent as one request. No more requests are open than a platform allows, and no
// more commands are on their way than the endpoint answers in time. HTTP keeps no order, so nothing may rely on the order of
// the commands in a request.

/** The most commands that one request carries. */
const maxCommands = 1_000;

/** The most bytes that the commands of one request have, unless a single one has more. */
const maxBytes = 512 * 1024;

/** How many commands are sent alone to an endpoint that has refused to take several, before it is asked again. */
const aloneFor = 1_000;

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
  readonly signal: CallSignal;
  readonly onSent: SentHook | undefined;
  readonly settle: (outcome: Outcome) => void;
}

/**
 * A function that sends commands, those of one turn together. A command that still waits when its signal aborts is never
 * sent. A request is aborted when no caller waits for its commands any more. Until then its answer reaches all of them.
 *
 * @param name the endpoint's, for errors
 * @param maxRequests the most requests that are open at once
 * @param server see {@link Transport}
 */
export function batchingSend(
  name: string,
  maxRequests: number,
  post: Post,
  server?: ServerFacts,
): Endpoint["send"] {
  const batches = new Batches(name, maxRequests, post);
  return asSend({
    ...(server && { server }),
    get window() {
      return batches.size;
    },
    send: (command, signal, onSent) =>
      new Promise((resolve, reject) => {
        const settle = (outcome: Outcome) => {
          if ("error" in outcome) reject(outcome.error);
          else resolve(outcome.reply);
        };
        batches.add({ command, text: JSON.stringify(command), signal, onSent, settle });
      }),
  });
}

/** What reaches one endpoint. */
class Batches {
  readonly #name: string;
  readonly #maxRequests: number;
  readonly #post: Post;
  /** What waits to be sent, in the order of the calls. All that are urgent are sent before those that yield to them. */
  readonly #urgent = new Set<Pending>();
  readonly #yielding = new Set<Pending>();
  #open = 0;
  #inFlight = 0;
  #window = initialWindow;
  /** How often the window was replaced by a smaller one. */
  #narrowings = 0;
  /** By the callers' clock. */
  #answeredAt = -Infinity;
  #mostTogether = maxCommands;
  #sentAlone = 0;

  constructor(name: string, maxRequests: number, post: Post) {
    this.#name = name;
    this.#maxRequests = maxRequests;
    this.#post = post;
  }

  /** How many commands the endpoint takes at once. */
  get size(): number {
    return this.#window.size;
  }

  add(pending: Pending): void {
    const { now, timeout, yields } = pending.signal;
    // After a pause the endpoint may be faster or slower than before.
    if (this.#inFlight === 0 && now() - this.#answeredAt > timeout) this.#window = initialWindow;
    if (yields) this.#yielding.add(pending);
    else this.#urgent.add(pending);
    // On Workers each command asks for it: the platform may drop what another request began.
    if (this.#waiting === 1 || !sharesRequests()) queueMicrotask(() => this.#flush(false));
  }

  get #waiting(): number {
    return this.#urgent.size + this.#yielding.size;
  }

  /** `haveWaited`: whether what is sent now had to wait for room. */
  #flush(haveWaited: boolean): void {
    // Where requests may not be shared, the platform itself queues what is too much: it knows whose request is whose.
    if (!sharesRequests()) {
      while (this.#waiting > 0) this.#sendNext(Infinity, false);
      return;
    }
    const { size } = this.#window;
    // Less than half a window would make many small requests (RFC 813, the "silly window syndrome").
    if (Math.floor(size) - this.#inFlight < Math.min(this.#waiting, size / 2)) return;
    // While little is known, several requests for a window: a slow server answers some of them in time.
    const share = size > 2 * initialWindow.size ? size : Math.ceil(size / Math.min(4, this.#maxRequests));
    while (this.#waiting > 0 && this.#open < this.#maxRequests) {
      const room = Math.floor(this.#window.size) - this.#inFlight;
      if (room < 1) return;
      this.#sendNext(Math.min(room, share), haveWaited);
    }
  }

  #sendNext(most: number, haveWaited: boolean): void {
    const batch = this.#take(Math.min(most, this.#mostTogether), haveWaited);
    if (batch.length > 0) void this.#send(batch);
  }

  /** The next commands that share a request, without those whose answers would come too late. */
  #take(most: number, haveWaited: boolean): Pending[] {
    const batch: Pending[] = [];
    let bytes = 0;
    for (const queue of [this.#urgent, this.#yielding]) {
      for (const next of queue) {
        // UTF-8 takes up to three bytes for a character of a string.
        bytes += next.text.length * (/[^\0-\x7f]/.test(next.text) ? 3 : 1);
        if (batch.length > 0 && (batch.length >= most || bytes > maxBytes)) return batch;
        // Deleted first: if another Worker request has left it behind, the next lines throw.
        queue.delete(next);
        if (next.signal.aborted) this.#giveUp(next);
        else if (haveWaited && isLate(next.signal)) next.signal.onAbort(() => this.#giveUp(next));
        else batch.push(next);
      }
    }
    return batch;
  }

  #giveUp({ settle }: Pending): void {
    settle({ error: new EndpointError(this.#name, "timeout", notSent) });
  }

  async #send(batch: readonly Pending[]): Promise<void> {
    const controller = new AbortController();
    const { length } = batch;
    const { now, timeout } = batch[0]!.signal;
    const sentAt = now();
    const narrowings = this.#narrowings;
    let isOpen = true;
    const close = (next: Window) => {
      if (!isOpen) return;
      isOpen = false;
      const isNarrower = next.size < this.#window.size;
      // What was sent before the window was narrowed shows nothing of the narrower one.
      if (!isNarrower || narrowings === this.#narrowings) {
        this.#window = next;
        this.#narrowings += isNarrower ? 1 : 0;
      }
      this.#answeredAt = now();
      this.#open -= 1;
      this.#inFlight -= length;
      this.#flush(true);
    };
    let watched = 0;
    let ignoreAbort: (() => void) | undefined;
    /** Watches the first one that still waits. */
    const watch = () => {
      while (batch[watched]?.signal.aborted) watched += 1;
      ignoreAbort = batch[watched]?.signal.onAbort(watch);
      if (ignoreAbort) return;
      controller.abort();
      // Now, because `fetch` may not notice.
      close(afterTimeout(this.#window));
    };
    this.#open += 1;
    this.#inFlight += length;
    let unreported = length;
    for (const { onSent } of batch) if (onSent?.(unreported)) unreported = 0;
    watch();
    const outcomes = await this.#post(batch, controller.signal);
    ignoreAbort?.();
    this.#learn(outcomes, length);
    batch.forEach((pending, index) => {
      if (outcomes) pending.settle(outcomes[index]!);
      else if (isOpen) this.#urgent.add(pending);
      // Nobody waits for it. In the queue it would stand for a request under way, which sends what comes after it.
      else this.#giveUp(pending);
    });
    const took = (now() - sentAt) / timeout;
    // The refusals of a gateway do not show how fast the server is.
    const replies = outcomes?.filter((outcome) => "reply" in outcome).length ?? 0;
    close(afterAnswer(this.#window, { replies, inFlight: this.#inFlight, took }));
  }

  /** Whether the endpoint takes several commands together: one that does not is asked again after a while. */
  #learn(outcomes: readonly Outcome[] | undefined, sent: number): void {
    if (!outcomes) {
      this.#mostTogether = 1;
      this.#sentAlone = 0;
    } else if (sent > 1) this.#mostTogether = maxCommands;
    else if (this.#mostTogether === 1) {
      this.#sentAlone += 1;
      // Two are enough for the question.
      if (this.#sentAlone >= aloneFor) this.#mostTogether = 2;
    }
  }
}

/** Whether the rest of its timeout is too short for an answer. Given up by its caller, it would still load the endpoint. */
function isLate({ now, start, timeout }: CallSignal): boolean {
  return now() - start > (1 - early) * timeout;
}
