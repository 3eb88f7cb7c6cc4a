import type { Entry, Head, Storage } from "./storage.ts";
import { type Value } from "./values.ts";
/** Keys in memory. */
export declare class MapStorage implements Storage {
  #private;
  /** All keys, those that have expired included. */
  get keys(): readonly string[];
  head(key: string): Head | undefined;
  entry(key: string): Entry | undefined;
  write(key: string, value: Value, deadline: number | null): void;
  setDeadline(key: string, deadline: number): void;
  delete(key: string): void;
  clear(): void;
}
