import type { Entry, Storage } from "./storage.ts";
import type { Value } from "./values.ts";

/** Keys in memory. */
export class MapStorage implements Storage {
  readonly #entries = new Map<string, Entry>();

  /** All keys, those that have expired included. */
  get keys(): readonly string[] {
    return [...this.#entries.keys()];
  }

  entry(key: string): Entry | undefined {
    return this.#entries.get(key);
  }

  write(key: string, value: Value, deadline: number | null): void {
    this.#entries.set(key, { value, deadline });
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
