import type { World } from "./world.ts";

/** What has happened to one idempotency key: the values its handlers returned, and the values its callers got. */
interface RunHistory {
  /** When its handler returned a value. */
  readonly returned: Map<string, number>;
  /** The result that a quorum has stored, and when that was known. */
  stored: { readonly value: string; readonly at: number } | undefined;
  /** The first replay. */
  replayed: string | undefined;
}

/** The histories of all idempotency keys of a world. */
export class RunHistories {
  readonly #world: Pick<World, "now" | "check" | "violate">;
  readonly #histories = new Map<string, RunHistory>();
  #serial = 0;

  constructor(world: Pick<World, "now" | "check" | "violate">) {
    this.#world = world;
  }

  /** A value that no other handler returns. */
  nextValue(): { readonly value: string; readonly serial: number } {
    this.#serial += 1;
    return { value: `result ${this.#serial}`, serial: this.#serial };
  }

  /** A handler begins. It must not when a result is stored. */
  begins(key: string, name: string): void {
    const { stored } = this.#of(key);
    // Where it holds, the call gets a replay, and that is counted.
    if (!stored) return;
    this.#world.violate(
      "a stored result stands",
      `${name} runs ${key} again, ${stored.value} was stored at ${stored.at.toFixed()}`,
    );
  }

  /** A handler returns. */
  returned(key: string, value: string): void {
    this.#of(key).returned.set(value, this.#world.now);
  }

  /** A run has learned that a quorum has stored its value. */
  stored(key: string, value: string): void {
    const history = this.#of(key);
    const before = history.stored?.value;
    if (before !== undefined) {
      const detail = () => `${key}: ${value} stored after ${before}`;
      this.#world.check("a stored result stands", before === value, detail);
    }
    history.stored ??= { value, at: this.#world.now };
  }

  /**
   * A caller got a replay.
   *
   * @param invoked when it made its call
   */
  replayed(key: string, value: string, invoked: number): void {
    const history = this.#of(key);
    const { stored } = history;
    const isKnown = history.returned.has(value);
    this.#world.check("replays agree", isKnown, () => `${key}: no handler returned ${value}`, []);
    if (stored && stored.at < invoked) {
      const detail = () => `${key}: ${value} replayed, ${stored.value} stored`;
      this.#world.check("a stored result stands", stored.value === value, detail);
    }
    const first = history.replayed ?? value;
    if (history.replayed !== undefined) {
      this.#world.check("replays agree", first === value, () => `${key}: ${value} replayed after ${first}`);
    }
    history.replayed = first;
  }

  #of(key: string): RunHistory {
    let history = this.#histories.get(key);
    if (!history) {
      history = { returned: new Map(), stored: undefined, replayed: undefined };
      this.#histories.set(key, history);
    }
    return history;
  }
}
