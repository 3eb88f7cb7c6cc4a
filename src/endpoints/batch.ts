import type { EndpointError } from "../errors/errors.ts";
import { sharesRequests } from "../runtime/runtime.ts";
import { type Caller, type Command, type Endpoint, type SentHook, sendOf, unsentError } from "./endpoint.ts";

// Commands of one turn of the event loop share a request, and so do commands that wait because as many requests are
// open as a platform allows. HTTP keeps no order, so nothing may rely on the order of the commands in a request.

/** Of one request. */
const maxCommands = 1_000;

/** So few commands always share a request. */
const fewCommands = 25;

/** Of one request, unless a single command has more. */
const maxBytes = 512 * 1024;

export type Outcome = { readonly reply: unknown } | { readonly error: EndpointError };

export interface Encoded {
  readonly command: Command;
  readonly text: string;
}

/** Sends commands as one request. Never rejects. */
export type Post = (batch: readonly Encoded[], signal: AbortSignal) => Promise<readonly Outcome[]>;

interface Pending extends Encoded {
  readonly caller: Caller;
  readonly onSent: SentHook | undefined;
  readonly settle: (outcome: Outcome) => void;
  /** Cancels its watch, if it waits for longer than its turn. */
  stay?: () => void;
}

/** Not `queueMicrotask`, because fake timers of Jest and Sinon hold that back. */
const turnEnd = Promise.resolve();

interface Way {
  readonly name: string;
  /** Open at once. */
  readonly maxRequests: number;
  /** Whether several commands share a request. */
  readonly pipelines: boolean;
  readonly post: Post;
}

/**
 * Sends the commands of one turn together. A command that still waits when its signal aborts is never sent. A request
 * is aborted when no caller waits for its commands any more.
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

class Batches {
  readonly #way: Way;
  /** In the order of the calls. */
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
    // On Workers each command does it, because the platform may drop what another invocation began.
    if (this.#isDue && sharesRequests()) return;
    this.#isDue = true;
    // It throws if another invocation has left a command behind. The next call then sends the commands after that.
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
    // Workers queue excess requests themselves, because they know whose request is whose.
    const free = sharesRequests() ? this.#way.maxRequests - this.#open : Infinity;
    for (let left = free; this.#waiting.size > 0 && left > 0; left -= 1) {
      // In several requests, so that a slow server answers a part of them in time.
      const share = free === Infinity ? maxCommands : Math.max(fewCommands, this.#waiting.size / left);
      const batch = this.#take(this.#way.pipelines ? Math.min(share, maxCommands) : 1);
      if (batch.length > 0) void this.#send(batch);
    }
  }

  #take(most: number): Pending[] {
    const batch: Pending[] = [];
    let bytes = 0;
    for (const next of this.#waiting) {
      // At most: UTF-8 takes up to three bytes for a character of a string.
      bytes += next.text.length * (/[^\0-\x7f]/.test(next.text) ? 3 : 1);
      if (batch.length > 0 && (batch.length >= most || bytes > maxBytes)) return batch;
      // First, because the next line throws if another Worker invocation has left the command behind.
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
    // The next request takes the place of one that nobody waits for, because `fetch` may not notice the abort.
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

/** Aborts, and calls `onLeft`, when nobody waits for any of the commands any more. */
function signalOf(batch: readonly Pending[], onLeft: () => void) {
  const { caller } = batch[0]!;
  // The commands of one round end together.
  const isShared = batch.some((pending) => pending.caller !== caller);
  const controller = isShared ? new AbortController() : undefined;
  let watched = 0;
  let ignore: (() => void) | undefined;
  /** Watches the first one that still waits, after `last`. */
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
