import { sharesRequests } from "../runtime/runtime.ts";

/** At first, and after a pause. */
const first = 100;

/** In time for twice as many, as soon as possible, in time, or not in time. */
export type Promptness = "early" | "usual" | "late" | "never";

/**
 * Places for commands or calls that are in flight at once: as many as are answered in time, because more would be
 * executed after their callers have given up. An early answer makes room for one more, a late one for one fewer.
 */
export class Room {
  #places = first;
  #taken = 0;
  readonly #least: number;
  readonly #urgent = new Set<() => void>();
  readonly #others = new Set<() => void>();

  /** @param least the places that there are always */
  constructor(least: number = first) {
    this.#least = least;
  }

  /** False: there is no place. On Workers there always is, because nothing may wait for another invocation. */
  take(): boolean {
    // The endpoints may have become faster or slower.
    if (this.#taken === 0) this.#places = first;
    if (this.#taken >= this.#places && sharesRequests()) return false;
    this.#taken += 1;
    return true;
  }

  /**
   * Waits for a place, and takes it. Urgent requests come first.
   *
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

  /** Takes a place even if there is none. */
  squeeze(): void {
    this.#taken += 1;
  }

  /** Without `promptness` nothing was sent, which shows nothing. */
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
    // While half of the places are free, an answer says nothing about more.
    const isUsed = 2 * this.#taken >= places;
    if (isUsed && (promptness === "early" || (promptness === "usual" && places < first))) return 1;
    if (promptness === "never") return places > this.#least ? -1 : 0;
    // Far endpoints are always late.
    return promptness === "late" && places > first ? -1 : 0;
  }
}
