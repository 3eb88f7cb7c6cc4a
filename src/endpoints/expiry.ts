import { onAbort } from "../abort.ts";

/** What is known of a wait before it ends. */
interface Wait {
  /** From its beginning to its end, in ms. Default: not known. */
  readonly timeout?: number;
  /** A monotonic clock, in ms. Default: one that stands still. */
  readonly now?: () => number;
  /** Whether commands that do not yield are sent first: see `RoundOptions`. Default false. */
  readonly yields?: boolean;
}

/**
 * The end of the wait for an answer. In Node an AbortSignal takes as much memory as the rest of a round together, so one is
 * made only for an endpoint that needs it.
 */
export class Expiry {
  aborted = false;
  readonly timeout: number;
  readonly now: () => number;
  readonly yields: boolean;
  /** When the wait began, by its clock. */
  readonly start: number;
  #listeners: readonly (() => void)[] = [];

  constructor({ timeout = Infinity, now = () => 0, yields = false }: Wait = {}) {
    this.timeout = timeout;
    this.now = now;
    this.yields = yields;
    this.start = now();
  }

  /** A signal that aborts together with this, which has not aborted yet. */
  get signal(): AbortSignal {
    const controller = new AbortController();
    this.onAbort(() => controller.abort());
    return controller.signal;
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

/** Works with an expiry that ends together with a signal. */
export function withExpiryOf<Value>(
  signal: AbortSignal,
  work: (expiry: Expiry) => Promise<Value>,
): Promise<Value> {
  const expiry = new Expiry();
  if (!signal.aborted) return work(expiry).finally(onAbort(signal, () => expiry.abort()));
  expiry.abort();
  return work(expiry);
}
