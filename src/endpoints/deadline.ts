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
  #aborted = false;
  #controller: AbortController | undefined;
  readonly #listeners: (() => void)[] = [];

  get aborted(): boolean {
    return this.#aborted;
  }

  /** Aborts together with this. */
  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.#aborted) this.#controller.abort();
    }
    return this.#controller.signal;
  }

  abort(): void {
    this.#aborted = true;
    this.#controller?.abort();
    for (const listener of this.#listeners.splice(0)) listener();
  }

  addEventListener(_type: "abort", listener: () => void): void {
    this.#listeners.push(listener);
  }

  removeEventListener(_type: "abort", listener: () => void): void {
    const index = this.#listeners.indexOf(listener);
    if (index >= 0) this.#listeners.splice(index, 1);
  }
}
