import type { EndpointError } from "../errors/errors.ts";
import { sharesRequests } from "../runtime/runtime.ts";
import { type Caller, type Command, type Endpoint, type SentHook, sendOf, unsentError } from "./endpoint.ts";

// Commands of one turn of the event loop are sent as one request, and no more requests are open than a platform allows. Commands
// that wait meanwhile are sent together. HTTP keeps no order, so nothing may rely on the order of the commands in a request.

/** The most commands that one request carries. */
const maxCommands = 1_000;

/** So few commands always share a request. */
const fewCommands = 25;

/** The most bytes that the commands of one request have, unless a single one has more. */
const maxBytes = 512 * 1024;

/** What became of one command: its reply, or why there is none. */
export type Outcome = { readonly reply: unknown } | { readonly error: EndpointError };

/** A command, and its JSON. */
export interface Encoded {
  readonly command: Command;
  readonly text: string;
}

/** Sends commands as one request. Resolves with the outcome of each, and never rejects. */
export type Post = (batch: readonly Encoded[], signal: AbortSignal) => Promise<readonly Outcome[]>;

/** A command, from the call to its reply. */
interface Pending extends Encoded {
  readonly caller: Caller;
  readonly onSent: SentHook | undefined;
  readonly settle: (outcome: Outcome) => void;
  /** Set while it waits for longer than its turn: cancels its watch. */
  stay?: () => void;
}

/** Not `queueMicrotask`: Jest's and Sinon's fake timers hold its callbacks back, and the queue would never be sent. */
const turnEnd = Promise.resolve();

/** How an endpoint's commands are sent. */
interface Way {
  /** The endpoint's name, for errors. */
  readonly name: string;
  /** The most requests that are open at once. */
  readonly maxRequests: number;
  /** Whether several commands share a request. */
  readonly pipelines: boolean;
  readonly post: Post;
}

/**
 * A function that sends commands, all commands of one turn together. A command that still waits when its signal aborts is never
 * sent. A request is aborted when no caller waits for its commands any more. Until then its answer reaches all of them.
 */
export function batchingSend(way: Way): Endpoint["send"] {
  const batches = new Batches(way);
  return sendOf(
    (command, caller, onSent) =>
      new Promise((resolve, reject) => {
        const settle = (outcome: Outcome) => {
          if ("error" in outcome) reject(outcome.error);
          else resolve(outcome.reply);
        };
        batches.add({ command, text: JSON.stringify(command), caller, onSent, settle });
      }),
  );
}

/** What reaches one endpoint. */
class Batches {
  readonly #way: Way;
  /** The commands that wait to be sent, in the order of the calls. */
  readonly #waiting = new Set<Pending>();
  /** Whether the end of this turn sends them. */
  #isDue = false;
  /** The requests that somebody waits for. */
  #open = 0;

  constructor(way: Way) {
    this.#way = way;
  }

  add(pending: Pending): void {
    this.#waiting.add(pending);
    // On Workers each command asks for it: the platform may drop what another request began.
    if (this.#isDue && sharesRequests()) return;
    this.#isDue = true;
    // What another request has left behind throws. The commands after it are sent by the next one that asks.
    turnEnd.then(() => this.#endTurn()).catch(() => undefined);
  }

  #endTurn(): void {
    this.#isDue = false;
    this.#flush();
    for (const pending of this.#waiting) {
      if (pending.caller.hasGivenUp) this.#giveUp(pending);
      else pending.stay ??= pending.caller.onGiveUp(() => this.#giveUp(pending));
    }
  }

  #flush(): void {
    // On Workers the platform itself queues excess requests: it knows whose request is whose.
    const free = sharesRequests() ? this.#way.maxRequests - this.#open : Infinity;
    for (let left = free; this.#waiting.size > 0 && left > 0; left -= 1) {
      // In several requests: a slow server then answers a part of them in time.
      const share = free === Infinity ? maxCommands : Math.max(fewCommands, this.#waiting.size / left);
      const batch = this.#take(this.#way.pipelines ? Math.min(share, maxCommands) : 1);
      if (batch.length > 0) void this.#send(batch);
    }
  }

  /** The next commands that share a request, without those that nobody waits for any more. */
  #take(most: number): Pending[] {
    const batch: Pending[] = [];
    let bytes = 0;
    for (const next of this.#waiting) {
      // UTF-8 takes up to three bytes for a character of a string.
      bytes += next.text.length * (/[^\0-\x7f]/.test(next.text) ? 3 : 1);
      if (batch.length > 0 && (batch.length >= most || bytes > maxBytes)) return batch;
      // Deleted first: if another Worker request has left it behind, the next line throws.
      this.#waiting.delete(next);
      if (next.caller.hasGivenUp) this.#giveUp(next);
      else batch.push(next);
    }
    return batch;
  }

  #giveUp(pending: Pending): void {
    this.#waiting.delete(pending);
    pending.settle({ error: unsentError(this.#way.name) });
  }

  async #send(batch: readonly Pending[]): Promise<void> {
    let unreported = batch.length;
    for (const { stay, onSent } of batch) {
      stay?.();
      if (!onSent) continue;
      onSent(unreported);
      unreported = 0;
    }
    let isOpen = true;
    // If nobody waits for it, the next request takes its place, because `fetch` may not notice.
    const end = () => {
      if (isOpen) this.#open -= 1;
      isOpen = false;
      this.#flush();
    };
    this.#open += 1;
    const { signal, release } = signalOf(batch, end);
    const outcomes = await this.#way.post(batch, signal);
    release();
    for (const [index, { settle }] of batch.entries()) settle(outcomes[index]!);
    end();
  }
}

/**
 * The signal of a request: it aborts when nobody waits any more for any of its commands, and `onLeft` is called. `release`:
 * ends its watch.
 */
function signalOf(batch: readonly Pending[], onLeft: () => void) {
  const { caller } = batch[0]!;
  // The commands of one round end together.
  const isShared = batch.some((pending) => pending.caller !== caller);
  const controller = isShared ? new AbortController() : undefined;
  let watched = 0;
  let ignore: (() => void) | undefined;
  /** Watches the first one that still waits. `last`: the one that has waited until now. */
  const watch = (last?: Caller) => {
    while (batch[watched]?.caller.hasGivenUp) watched += 1;
    const next = batch[watched]?.caller;
    if (next) {
      ignore = next.onGiveUp(() => watch(next));
      return;
    }
    controller?.abort(last?.signal.reason);
    onLeft();
  };
  watch();
  return { signal: controller?.signal ?? caller.signal, release: () => ignore?.() };
}
