import { onAbort } from "../abort.ts";
import { windowOf } from "../endpoints/batch.ts";
import type { Endpoint } from "../endpoints/endpoint.ts";
import { maxTimerDelay, type Runtime } from "../runtime.ts";
import { sharedTimer } from "../shared-timer.ts";
import { quorumOf } from "./tally.ts";

/** By the list of a client's endpoints, which all its calls share. */
const known = new WeakMap<readonly Endpoint[], Turns>();

/** The turns of a client. */
export function turnsOf(endpoints: readonly Endpoint[]): Turns {
  const turns = known.get(endpoints) ?? new Turns(endpoints);
  known.set(endpoints, turns);
  return turns;
}

/** How long to wait for a turn. */
interface Patience {
  readonly runtime: Runtime;
  readonly ms: number;
  readonly signal?: AbortSignal | undefined;
  /** Whether it begins before all that are not: it makes room. Default false. */
  readonly isUrgent?: boolean;
}

/**
 * Lets as many acquires and releases be under way as a quorum of the endpoints takes commands at once; the others wait, in
 * the order of their calls, and acquires behind releases. Otherwise each would wait at every endpoint by itself until its timeout, and try again: at an
 * endpoint that cannot do all, most of what was sent would be about to expire, and something else at each endpoint.
 */
class Turns {
  readonly #endpoints: readonly Endpoint[];
  readonly #urgent = new Set<() => void>();
  readonly #waiting = new Set<() => void>();
  #taken = 0;

  constructor(endpoints: readonly Endpoint[]) {
    this.#endpoints = endpoints;
  }

  /**
   * Does the work of a turn: at once where it may, else when others have ended. After `ms`, or when `signal` aborts, it no
   * longer waits.
   */
  async take<Result>(work: () => Promise<Result>, patience: Patience): Promise<Result> {
    const { ms, signal } = patience;
    if (ms > 0 && !signal?.aborted && !this.#isFree()) await this.#wait(patience);
    else this.#taken += 1;
    try {
      return await work();
    } finally {
      this.#taken -= 1;
      this.#beginNext();
    }
  }

  #beginNext(): void {
    for (const queue of [this.#urgent, this.#waiting]) {
      for (const begin of queue) {
        if (!this.#isFree()) return;
        begin();
      }
    }
  }

  #wait({ runtime, ms, signal, isUrgent }: Patience): Promise<void> {
    const waiting = isUrgent ? this.#urgent : this.#waiting;
    return new Promise((resolve) => {
      const begin = () => {
        // Now: the next one must know.
        this.#taken += 1;
        waiting.delete(begin);
        cancel();
        ignoreAbort?.();
        resolve();
      };
      const cancel = sharedTimer(runtime, Math.min(ms, maxTimerDelay), begin);
      const ignoreAbort = signal && onAbort(signal, begin);
      waiting.add(begin);
    });
  }

  #isFree(): boolean {
    const { length } = this.#endpoints;
    const windows = this.#endpoints.map(windowOf).sort((one, other) => other - one);
    return this.#taken < windows[quorumOf(length) - 1]!;
  }
}
