import { onAbort } from "../abort.ts";
import { roomOf } from "../endpoints/batch.ts";
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
}

/**
 * Lets as many rounds that acquire be under way as a quorum of the endpoints takes commands at once; the others wait, in the
 * order of their calls. Otherwise each would wait at every endpoint by itself until its timeout, and try again: at an
 * endpoint that cannot do all, most of what was sent would be about to expire, and something else at each endpoint.
 */
class Turns {
  readonly #endpoints: readonly Endpoint[];
  readonly #waiting = new Set<() => void>();
  #taken = 0;

  constructor(endpoints: readonly Endpoint[]) {
    this.#endpoints = endpoints;
  }

  /**
   * Does the work of a turn: at once where it may, else when others have ended. After `ms`, or when `signal` aborts, it no
   * longer waits.
   */
  async take<Result>(work: () => Promise<Result>, { runtime, ms, signal }: Patience): Promise<Result> {
    if (ms > 0 && !signal?.aborted && !this.#isFree()) await this.#wait({ runtime, ms, signal });
    else this.#taken += 1;
    try {
      return await work();
    } finally {
      this.#taken -= 1;
      for (const begin of this.#waiting) {
        if (!this.#isFree()) break;
        begin();
      }
    }
  }

  #wait({ runtime, ms, signal }: Patience): Promise<void> {
    return new Promise((resolve) => {
      const begin = () => {
        // Now: the next one must know.
        this.#taken += 1;
        this.#waiting.delete(begin);
        cancel();
        ignoreAbort?.();
        resolve();
      };
      const cancel = sharedTimer(runtime, Math.min(ms, maxTimerDelay), begin);
      const ignoreAbort = signal && onAbort(signal, begin);
      this.#waiting.add(begin);
    });
  }

  #isFree(): boolean {
    const { length } = this.#endpoints;
    const rooms = this.#endpoints.map(roomOf).sort((one, other) => other - one);
    // One is always under way, whose end lets the next ones begin.
    return this.#taken < Math.max(1, rooms[quorumOf(length) - 1]!);
  }
}
