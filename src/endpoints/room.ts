import { sharesRequests } from "../runtime/runtime.ts";

/** The places at first, and after a pause. */
const first = 100;

/** When the answer to one came: in time for twice as many, as soon as possible, in time, or not in time. */
export type Promptness = "early" | "usual" | "late" | "never";

/**
 * Places for commands or calls that are under way at once: as many as are answered in time. More would be executed after their
 * callers have given up. So each early answer makes room for one more, and each late one for one fewer.
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

  /** Takes a place. False: there is none. On Workers nothing may wait for what another invocation has opened. */
  take(): boolean {
    // After a pause the endpoints may be faster or slower than before.
    if (this.#taken === 0) this.#places = first;
    if (this.#taken >= this.#places && sharesRequests()) return false;
    this.#taken += 1;
    return true;
  }

  /**
   * Waits for a place, and takes it: an urgent request leaves before all others.
   *
   * @param onGiveUp sees to it that its argument is called when this waits no longer. Its result cancels that
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

  /** Gives a place back, to the next one that waits. Without `promptness` nothing was sent, which shows nothing. */
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
    // If half of the places are free, an answer shows nothing of what would become of more.
    const isUsed = 2 * this.#taken >= places;
    if (isUsed && (promptness === "early" || (promptness === "usual" && places < first))) return 1;
    if (promptness === "never") return places > this.#least ? -1 : 0;
    // Endpoints that are far away are always late.
    return promptness === "late" && places > first ? -1 : 0;
  }
}
