import type { Entry, Head, Storage } from "./storage.ts";
import { Hash, type Value } from "./values.ts";

/** Keys in memory. */
export class MapStorage implements Storage {
  readonly #entries = new Map<string, Entry>();

  /** All keys, those that have expired included. */
  get keys(): readonly string[] {
    return [...this.#entries.keys()];
  }

  head(key: string): Head | undefined {
    return this.#entries.get(key);
  }

  entry(key: string): Entry | undefined {
    return this.#entries.get(key);
  }

  write(key: string, value: Value, deadline: number | null): void {
    const kind = typeof value === "string" ? "string" : value instanceof Hash ? "hash" : "zset";
    this.#entries.set(key, { kind, value, deadline });
  }

  setDeadline(key: string, deadline: number): void {
    this.#entries.set(key, { ...this.#entries.get(key)!, deadline });
  }

  delete(key: string): void {
    this.#entries.delete(key);
  }

  clear(): void {
    this.#entries.clear();
  }
}
