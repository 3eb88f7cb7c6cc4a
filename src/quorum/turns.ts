import { type Promptness, Room } from "../endpoints/room.ts";
import { onAbort } from "../runtime/abort.ts";
import { maxTimerDelay, type Runtime } from "../runtime/runtime.ts";

/** Of a timeout: after an answer within this share, twice as many would mostly come in time. */
const early = 0.25;

/** Of the fastest answer's time: far endpoints are not slow. */
const usual = 1.5;

/** With each answer the fastest time grows, because the way to an endpoint may have become longer. */
const drift = 1.002;

/** If messages get lost, a few calls must not wait for each other. */
const least = 10;

export interface Turn {
  readonly runtime: Runtime;
  /** ms after which it waits no longer. */
  readonly ms: number;
  /** Of its requests, in ms. */
  readonly timeout: number;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Lets claims and releases begin, as many at once as are answered in time. Releases go first, because they make room.
 * Without turns, all would be sent, answered late, and then sent again.
 */
export class Turns {
  readonly #room = new Room(least);
  /** ms. */
  #fastest = Infinity;

  /** Undefined: its turn did not come in time. */
  async claim<Result>(turn: Turn, work: () => Promise<Result>): Promise<Result | undefined> {
    // A further late claim would take time from those that can still be answered.
    if (!this.#room.take() && !(await this.#waitFor(turn, false))) return undefined;
    return this.#run(turn, work);
  }

  /** It runs even if its turn does not come in time. */
  async release<Result>(turn: Turn, work: () => Promise<Result>): Promise<Result> {
    if (!this.#room.take() && !(await this.#waitFor(turn, true))) this.#room.squeeze();
    return this.#run(turn, work);
  }

  async #run<Result>({ runtime, timeout }: Turn, work: () => Promise<Result>): Promise<Result> {
    const start = runtime.monotonic();
    try {
      return await work();
    } finally {
      this.#room.leave(this.#promptness(runtime.monotonic() - start, timeout));
    }
  }

  #promptness(took: number, timeout: number): Promptness {
    if (took >= timeout) return "never";
    // A call that fails at once takes 0 ms, and would be the fastest forever.
    this.#fastest = Math.max(1, Math.min(drift * this.#fastest, took));
    if (took < early * timeout) return "early";
    return took < usual * this.#fastest ? "usual" : "late";
  }

  /** False: it waits no longer, or its signal aborts. */
  async #waitFor({ runtime, ms, signal }: Turn, isRelease: boolean): Promise<boolean> {
    if (ms <= 0 || signal?.aborted) return false;
    return this.#room.wait(isRelease, (giveUp) => {
      const cancel = runtime.timer(Math.min(ms, maxTimerDelay), giveUp);
      const ignoreAbort = signal && onAbort(signal, giveUp);
      return () => {
        cancel();
        ignoreAbort?.();
      };
    });
  }
}
