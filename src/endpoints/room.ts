import { sharesRequests } from "../runtime/runtime.ts";

/** At first, and after a pause. */
const first = 100;

export type Promptness = "early" | "usual" | "late" | "never";

/**
 * As many commands or calls at once as are answered in time, because more would be executed after their callers have
 * given up. An early answer makes room for one more, a late one for one fewer.
 */
export class Room {
  #places = first;
  #taken = 0;
  readonly #least: number;
  readonly #urgent = new Set<() => void>();
  readonly #others = new Set<() => void>();

  constructor(least: number = first) {
    this.#least = least;
  }

  /** On Workers there always is a place, because nothing may wait for another invocation. */
  take(): boolean {
    // The endpoints may have become faster or slower.
    if (this.#taken === 0) this.#places = first;
    if (this.#taken >= this.#places && sharesRequests()) return false;
    this.#taken += 1;
    return true;
  }

  /**
   * @param onGiveUp calls its argument when this waits no longer. Its result cancels that
   * @returns whether it has a place
   */
  wait(isUrgent: boolean, onGiveUp: (giveUp: () => void) => () => void): Promise<boolean> {
    const queue = isUrgent ? this.#urgent : this.#others;
    return new Promise((resolve) => {
      const end = (hasPlace: boolean) => {
        queue.delete(begin);
        cancel();
        resolve(hasPlace);
      };
      const begin = () => end(true);
      const cancel = onGiveUp(() => end(false));
      queue.add(begin);
    });
  }

  squeeze(): void {
    this.#taken += 1;
  }

  /** Without `promptness` nothing was sent. */
  leave(promptness?: Promptness): void {
    this.#places += this.#change(promptness);
    this.#taken -= 1;
    for (const queue of [this.#urgent, this.#others]) {
      for (const begin of queue) {
        if (!this.take()) return;
        begin();
      }
    }
  }

  #change(promptness: Promptness | undefined): -1 | 0 | 1 {
    const places = this.#places;
    const isUsed = 2 * this.#taken >= places;
    if (isUsed && (promptness === "early" || (promptness === "usual" && places < first))) return 1;
    if (promptness === "never") return places > this.#least ? -1 : 0;
    // Far endpoints are always late.
    return promptness === "late" && places > first ? -1 : 0;
  }
}
