import { wrongType } from "./reply-error.ts";
import type { Entry, Storage } from "./storage.ts";
import type { Hash, SortedSet, Value } from "./values.ts";

/** The keys of one server. A key does not exist from the ms of its deadline on, though it stays where it is stored. */
export class Keyspace {
  readonly #storage: Storage;
  /** The time of the current command, in ms since 1970. */
  now = 0;

  constructor(storage: Storage) {
    this.#storage = storage;
  }

  /** Undefined: the key does not exist. A collection must not be changed: see {@link collection}. */
  entry(key: string): Entry | undefined {
    const found = this.#storage.entry(key);
    if (!found || found.deadline === null || found.deadline > this.now) return found;
    // Now, because a clock that is set back must not bring back what somebody was told to be gone.
    this.#storage.delete(key);
    return undefined;
  }

  /** @throws ReplyError where the key holds something else */
  text(key: string): string | undefined {
    const value = this.entry(key)?.value;
    if (value === undefined || typeof value === "string") return value;
    throw wrongType();
  }

  /** A copy; an empty one where the key does not exist. @throws ReplyError where the key holds something else */
  collection<Kind extends Hash | SortedSet>(key: string, kind: new (from?: Kind) => Kind): Kind {
    const value = this.entry(key)?.value;
    if (value === undefined) return new kind();
    if (value instanceof kind) return new kind(value);
    throw wrongType();
  }

  /**
   * Sets a key of any or no kind. A deadline that has passed, and an empty collection, delete it.
   *
   * @param deadline default: the one that the key has
   */
  put(key: string, value: Value, deadline: number | null = this.entry(key)?.deadline ?? null): void {
    const isEmpty = typeof value !== "string" && value.size === 0;
    if (isEmpty || (deadline !== null && deadline <= this.now)) this.delete(key);
    else this.#storage.write(key, value, deadline);
  }

  /** Gives a key another deadline, one that has passed deletes it. Returns whether the key existed. */
  expire(key: string, deadline: number): boolean {
    if (deadline <= this.now) return this.delete(key);
    if (!this.entry(key)) return false;
    this.#storage.setDeadline(key, deadline);
    return true;
  }

  /** Returns whether the key existed. */
  delete(key: string): boolean {
    const existed = this.entry(key) !== undefined;
    if (existed) this.#storage.delete(key);
    return existed;
  }
}
