import { createHash } from "node:crypto";
import { entryOf } from "../field.ts";
import type { World } from "../world/world.ts";

/**
 * What has happened to one idempotency key, since its result was last removed: the values its handlers returned, and
 * the values its callers got.
 */
class RunHistory {
  /** When its handler returned a value. */
  readonly returned = new Map<string, number>();
  /** The result that a quorum has stored, and when that was known. */
  stored: { readonly value: string; readonly at: number } | undefined;
  /** The first replay. */
  replayed: string | undefined;
  /** When its result was last removed. */
  removal = Number.NEGATIVE_INFINITY;
  /** When handlers of counted runs began that have neither completed nor failed. */
  begun: number[] = [];
}

/** The histories of all idempotency keys of a world. */
export class RunHistories {
  readonly #world: World;
  readonly #histories = new Map<string, RunHistory>();
  readonly #lastRemoval: (key: string) => number;
  #serial = 0;

  /** @param lastRemoval when something stored at a key in Redis was last removed on any server. Default: never */
  constructor(world: World, lastRemoval: (key: string) => number = () => Number.NEGATIVE_INFINITY) {
    this.#world = world;
    this.#lastRemoval = lastRemoval;
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

  /** The handler of a counted run begins: it must not when so many did that have neither completed nor failed. */
  counts(key: string, name: string, most: number): void {
    const history = this.#of(key);
    const removed = this.#lastRemoval(countKeyOf(key));
    history.begun = history.begun.filter((at) => at > removed);
    const before = history.begun.length;
    history.begun.push(this.#world.now);
    if (before === 0) return;
    const detail = () => `${name} runs ${key}, and ${before} runs have not ended, of ${most}`;
    this.#world.check("attempts are bounded", before < most, detail);
  }

  /** The handler of a counted run failed: nothing counts any more. */
  failed(key: string): void {
    this.#of(key).begun = [];
  }

  /**
   * A run has learned that a quorum has stored its value.
   *
   * @param invoked when it was called
   */
  stored(key: string, value: string, invoked: number): void {
    const history = this.#of(key);
    // It may have been removed before the run learned of it.
    if (this.#lastRemoval(recordKeyOf(key)) >= invoked) return;
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
    // It may have been removed, and replaced, before the caller learned of it.
    if (this.#lastRemoval(recordKeyOf(key)) >= invoked) return;
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
    const history = entryOf(this.#histories, key, () => new RunHistory());
    const removal = this.#lastRemoval(recordKeyOf(key));
    if (removal > history.removal) {
      Object.assign(history, { stored: undefined, replayed: undefined, removal });
    }
    return history;
  }
}

/** The key in Redis of a record, and of the count of its runs. */
export function recordKeyOf(key: string): string {
  return `redlock:idem:{${hashOf(key)}}`;
}

export function countKeyOf(key: string): string {
  return `redlock:tries:{${hashOf(key)}}`;
}

/** A key of runs as it is stored. */
function hashOf(key: string): string {
  return createHash("sha256")
    .update(JSON.stringify(["sim", key]))
    .digest("hex");
}
