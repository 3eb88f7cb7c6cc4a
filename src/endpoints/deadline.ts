/** The part of an AbortSignal that a batch watches. */
export interface Expiry {
  readonly aborted: boolean;
  addEventListener(type: "abort", listener: () => void): void;
  removeEventListener(type: "abort", listener: () => void): void;
}

/**
 * The end of the wait for the replies of a round. In Node an AbortSignal takes as much memory as all the rest of a round, so
 * one is made only for an endpoint that needs it.
 */
export class Deadline implements Expiry {
  aborted = false;
  #listeners: readonly (() => void)[] = [];

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
