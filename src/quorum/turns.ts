import { type Promptness, Room } from "../endpoints/room.ts";
import { onAbort } from "../runtime/abort.ts";
import { maxTimerDelay, type Runtime } from "../runtime/runtime.ts";

/** Of a timeout: for twice as many, most answers would still be in time. */
const early = 0.25;

/** Of the fastest answer's time: far endpoints are not slow. */
const usual = 1.5;

/** The way to an endpoint may have become longer. */
const drift = 1.002;

/** If messages get lost, a few calls must not wait for each other. */
const least = 10;

export interface Turn {
  readonly runtime: Runtime;
  /** ms after which it waits no longer. */
  readonly ms: number;
  /** In ms, for its requests. */
  readonly timeout: number;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Lets as many claims and releases begin as are answered in time, releases first. Without turns, all would be sent,
 * answered late, and sent again.
 */
export class Turns {
  readonly #room = new Room(least);
  /** ms that the fastest call takes. */
  #fastest = Infinity;

  /** Undefined: its turn did not come in time. */
  async claim<Result>(turn: Turn, work: () => Promise<Result>): Promise<Result | undefined> {
    // It would take time from claims that can still be answered.
    if (!this.#room.take() && !(await this.#waitFor(turn, false))) return undefined;
    return this.#run(turn, work);
  }

  /** Even if its turn does not come. */
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
    // A call that fails at once would be the fastest forever.
    this.#fastest = Math.max(1, Math.min(drift * this.#fastest, took));
    if (took < early * timeout) return "early";
    return took < usual * this.#fastest ? "usual" : "late";
  }

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
