/** The part of an AbortSignal that a batch watches, and what only a {@link Deadline} knows. */
export interface Expiry {
  readonly aborted: boolean;
  addEventListener(type: "abort", listener: () => void): void;
  removeEventListener(type: "abort", listener: () => void): void;
  readonly timing?: Timing | undefined;
}

/** What is known of a wait before it ends. */
export interface Timing {
  /** From its beginning to its end, in ms. */
  readonly timeout: number;
  /** When it began, by its clock. */
  readonly start: number;
  /** A monotonic clock, in ms. */
  now(): number;
  /** Whether commands that do not yield are sent first: see `RoundOptions`. */
  readonly yields: boolean;
}

/**
 * Aborts when a round waits no longer. In Node an AbortSignal takes as much memory as the rest of a round together, so one is
 * made only for an endpoint that needs it.
 */
export class Deadline implements Expiry {
  aborted = false;
  readonly timing: Timing | undefined;
  #listeners: readonly (() => void)[] = [];

  constructor(timing?: Timing) {
    this.timing = timing;
  }

  /** A signal that aborts together with this, which has not aborted yet. */
  get signal(): AbortSignal {
    const controller = new AbortController();
    this.addEventListener("abort", () => controller.abort());
    return controller.signal;
  }

  abort(): void {
    this.aborted = true;
    for (const listener of this.#listeners) listener();
  }

  addEventListener(_type: "abort", listener: () => void): void {
    this.#listeners = [...this.#listeners, listener];
  }

  removeEventListener(_type: "abort", listener: () => void): void {
    this.#listeners = this.#listeners.filter((one) => one !== listener);
  }
}
