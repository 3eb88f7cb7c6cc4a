import { onAbort } from "../abort.ts";
import type { Endpoint } from "../endpoints/endpoint.ts";
import { windowOf } from "../endpoints/transport.ts";
import { maxTimerDelay, type Runtime } from "../runtime.ts";
import { sharedTimer } from "../shared-timer.ts";
import { quorumOf } from "./tally.ts";

/** How long to wait for admission. */
interface Patience {
  readonly runtime: Runtime;
  readonly ms: number;
  readonly signal?: AbortSignal | undefined;
  /** Whether it is admitted before all that are not urgent, because it makes room. Default false. */
  readonly isUrgent?: boolean;
}

/**
 * Admits as many acquires and releases at once as a quorum of the endpoints takes commands. The others wait in the order of
 * their calls, releases before acquires. Without it, each command would wait in the queue of its endpoint until its timeout,
 * and then be sent again: a slow endpoint would be busy with commands about to expire, and each endpoint with other ones.
 */
export class Admission {
  readonly #endpoints: readonly Endpoint[];
  readonly #urgent = new Set<() => void>();
  readonly #waiting = new Set<() => void>();
  #inside = 0;

  constructor(endpoints: readonly Endpoint[]) {
    this.#endpoints = endpoints;
  }

  /** Enters if there is room. Every entry ends with a call of {@link leave}. */
  enter(): boolean {
    const hasRoom = this.#hasRoom();
    if (hasRoom) this.#inside += 1;
    return hasRoom;
  }

  /** Enters when there is room, and in any case after `ms` or when `signal` aborts. */
  async wait(patience: Patience): Promise<void> {
    if (patience.ms > 0 && !patience.signal?.aborted) await this.#wait(patience);
    else this.#inside += 1;
  }

  /** Makes room for the next ones. */
  leave(): void {
    this.#inside -= 1;
    for (const queue of [this.#urgent, this.#waiting]) {
      for (const admit of queue) {
        if (!this.#hasRoom()) return;
        admit();
      }
    }
  }

  #wait({ runtime, ms, signal, isUrgent }: Patience): Promise<void> {
    const waiting = isUrgent ? this.#urgent : this.#waiting;
    return new Promise((resolve) => {
      const admit = () => {
        // Counted now, because `leave` looks for room once more before this promise resolves.
        this.#inside += 1;
        waiting.delete(admit);
        cancel();
        ignoreAbort?.();
        resolve();
      };
      const cancel = sharedTimer(runtime, Math.min(ms, maxTimerDelay), admit);
      const ignoreAbort = signal && onAbort(signal, admit);
      waiting.add(admit);
    });
  }

  #hasRoom(): boolean {
    const open = this.#endpoints.filter((endpoint) => this.#inside < windowOf(endpoint));
    return open.length >= quorumOf(this.#endpoints.length);
  }
}
