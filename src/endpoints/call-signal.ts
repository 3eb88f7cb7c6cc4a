import { onAbort } from "../abort.ts";

/**
 * What an AbortSignal would be for the calls of a round: it aborts when they wait no longer. In Node an AbortSignal takes as
 * much memory as the rest of a round together, so one is made only for an endpoint that needs it.
 */
export class CallSignal {
  aborted = false;
  /** A monotonic clock, in ms. */
  readonly now: () => number;
  #listeners: readonly (() => void)[] = [];
  #controller: AbortController | undefined;

  /** @param now a monotonic clock, in ms. Default: one that stands still */
  constructor(now: () => number = () => 0) {
    this.now = now;
  }

  /** A signal that aborts together with this, which has not aborted yet: the same one for all endpoints of a round. */
  get abortSignal(): AbortSignal {
    if (!this.#controller) {
      const controller = new AbortController();
      this.#controller = controller;
      this.onAbort(() => controller.abort());
    }
    return this.#controller.signal;
  }

  /** Nothing aborts any more. A lock keeps its calls, and must not keep a signal for each of them. */
  end(): void {
    this.#listeners = [];
    this.#controller = undefined;
  }

  abort(): void {
    this.aborted = true;
    for (const listener of this.#listeners) listener();
  }

  /** Calls `listener` when this, which has not aborted yet, does; the returned function cancels it. */
  onAbort(listener: () => void): () => void {
    this.#listeners = [...this.#listeners, listener];
    return () => {
      this.#listeners = this.#listeners.filter((one) => one !== listener);
    };
  }
}

/** Works with a call signal that aborts together with `signal`. */
export function withCallSignal<Value>(
  signal: AbortSignal,
  work: (signal: CallSignal) => Promise<Value>,
): Promise<Value> {
  const own = new CallSignal();
  if (!signal.aborted) return work(own).finally(onAbort(signal, () => own.abort()));
  own.abort();
  return work(own);
}
