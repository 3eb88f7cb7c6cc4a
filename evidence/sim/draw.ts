import { seededRandom } from "../../local/src/memory/seeded-random.ts";

/** The source of all random decisions, from one seed. */
export class Draw {
  readonly #next: () => number;

  constructor(seed: number) {
    this.#next = seededRandom(seed);
  }

  /** A number in [0, 1). */
  fraction(): number {
    return this.#next();
  }

  /** A number in [least, most). */
  between(least: number, most: number): number {
    return least + this.#next() * (most - least);
  }

  /** An integer from `least` to `most`. */
  integer(least: number, most: number): number {
    return Math.floor(this.between(least, most + 1));
  }

  /** True with this probability. */
  chance(probability: number): boolean {
    return this.#next() < probability;
  }

  /** One of the items, all with the same probability. */
  pick<Item>(items: readonly Item[]): Item {
    return items[Math.floor(this.#next() * items.length)]!;
  }

  /** A separate source, so that the draws of one part do not shift those of another. */
  fork(): Draw {
    return new Draw(Math.floor(this.#next() * 2 ** 32));
  }

  /** All items in a random order, again and again. */
  deck<Item>(items: readonly Item[]): () => Item {
    let left: Item[] = [];
    return () => {
      if (left.length === 0) left = [...items];
      return left.splice(this.integer(0, left.length - 1), 1)[0]!;
    };
  }
}
