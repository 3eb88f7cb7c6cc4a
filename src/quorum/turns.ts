import { type Promptness, Room } from "../endpoints/room.ts";
import { onAbort } from "../runtime/abort.ts";
import { maxTimerDelay, type Runtime } from "../runtime/runtime.ts";

/** An answer within this share of its timeout is early: for twice as many, most would come in time. */
const early = 0.25;

/** An answer is usual if it takes at most so many times as long as the fastest one: far endpoints are not slow. */
const usual = 1.5;

/** After each answer, the time of the fastest one grows by this factor: the way to an endpoint may have become longer. */
const drift = 1.002;

/** The least number of turns at once: if messages get lost, a few calls must not wait for each other. */
const least = 10;

/** A call that waits for its turn. */
export interface Turn {
  readonly runtime: Runtime;
  /** ms after which it waits no longer. */
  readonly ms: number;
  /** The timeout of its requests, in ms. */
  readonly timeout: number;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Lets the claims and releases of a client begin, as many at once as are answered in time, in the order of the calls: first
 * releases, which make room. Without turns, all would be sent, answered late, and then sent again.
 */
export class Turns {
  readonly #room = new Room(least);
  /** ms that the fastest one has taken, the latest ones above all. */
  #fastest = Infinity;

  /** Does the work when it is its turn. Undefined: its turn did not come in time, and it was not begun. */
  async claim<Result>(turn: Turn, work: () => Promise<Result>): Promise<Result | undefined> {
    // One more late claim would take time from those that can still be answered.
    if (!this.#room.take() && !(await this.#waitFor(turn, false))) return undefined;
    return this.#run(turn, work);
  }

  /** Does the work when it is its turn, or when it waits no longer. */
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
    // At least 1 ms: a call that fails at once takes no time, and would be the fastest one forever.
    this.#fastest = Math.max(1, Math.min(drift * this.#fastest, took));
    if (took < early * timeout) return "early";
    return took < usual * this.#fastest ? "usual" : "late";
  }

  /** Resolves with true when its turn has come, and with false when it waits no longer or its signal aborts. */
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
