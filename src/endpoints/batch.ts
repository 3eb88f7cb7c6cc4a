import type { EndpointError } from "../errors/errors.ts";
import { sharesRequests } from "../runtime/runtime.ts";
import { type Caller, type Command, type Endpoint, type SentHook, sendOf, unsentError } from "./endpoint.ts";

// Commands of one turn of the event loop share a request, and so do commands that wait for a free connection. HTTP
// keeps no order, so nothing may rely on the order of the commands in a request.

const maxCommands = 1_000;

/** Always share a request. */
const fewCommands = 25;

/** Of a request with several commands. */
const maxBytes = 512 * 1024;

export type Outcome = { readonly reply: unknown } | { readonly error: EndpointError };

export interface Encoded {
  readonly command: Command;
  readonly text: string;
}

/** Never rejects. */
export type Post = (batch: readonly Encoded[], signal: AbortSignal) => Promise<readonly Outcome[]>;

interface Pending extends Encoded {
  readonly caller: Caller;
  readonly onSent: SentHook | undefined;
  readonly settle: (outcome: Outcome) => void;
  /** Cancels its watch. */
  stay?: () => void;
}

/** Fake timers hold back `queueMicrotask`. */
const turnEnd = Promise.resolve();

interface Way {
  readonly name: string;
  /** Open at once. */
  readonly maxRequests: number;
  readonly pipelines: boolean;
  readonly post: Post;
}

/**
 * If the signal aborts before a command was sent, it is never sent. A request is aborted when nobody waits for any of
 * its commands.
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
  readonly #waiting = new Set<Pending>();
  #isDue = false;
  #open = 0;

  constructor(way: Way) {
    this.#way = way;
  }

  add(pending: Pending): void {
    this.#waiting.add(pending);
    // On Workers, what another invocation began may be dropped.
    if (this.#isDue && sharesRequests()) return;
    this.#isDue = true;
    // It throws if another invocation has left a command behind.
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
    // Workers queue excess requests themselves.
    const free = sharesRequests() ? this.#way.maxRequests - this.#open : Infinity;
    for (let left = free; this.#waiting.size > 0 && left > 0; left -= 1) {
      // So that a slow server answers a part in time.
      const share = free === Infinity ? maxCommands : Math.max(fewCommands, this.#waiting.size / left);
      const batch = this.#take(this.#way.pipelines ? Math.min(share, maxCommands) : 1);
      if (batch.length > 0) void this.#send(batch);
    }
  }

  #take(most: number): Pending[] {
    const batch: Pending[] = [];
    let bytes = 0;
    for (const next of this.#waiting) {
      // In UTF-8, at most.
      bytes += next.text.length * (/[^\0-\x7f]/.test(next.text) ? 3 : 1);
      if (batch.length > 0 && (batch.length >= most || bytes > maxBytes)) return batch;
      // The next line throws if another invocation has left the command behind.
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
    // Another request takes its place if nobody waits, because `fetch` may not notice the abort.
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

/** Aborts when nobody waits any more. */
function signalOf(batch: readonly Pending[], onLeft: () => void) {
  const { caller } = batch[0]!;
  const isShared = batch.some((pending) => pending.caller !== caller);
  const controller = isShared ? new AbortController() : undefined;
  let watched = 0;
  let ignore: (() => void) | undefined;
  /** The first that still waits, after `last`. */
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
