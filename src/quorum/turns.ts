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

  /** Begins a turn where one is free. Whoever has begun one ends it by {@link leave}. */
  enter(): boolean {
    const isFree = this.#isFree();
    if (isFree) this.#taken += 1;
    return isFree;
  }

  /** Begins a turn when others have ended: after `ms`, or when `signal` aborts, in any case. */
  async wait(patience: Patience): Promise<void> {
    if (patience.ms > 0 && !patience.signal?.aborted) await this.#wait(patience);
    else this.#taken += 1;
  }

  /** Ends a turn; the next ones begin. */
  leave(): void {
    this.#taken -= 1;
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
