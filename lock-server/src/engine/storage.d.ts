import type { Value } from "./values.ts";
/** What is known of a key without its value, which may be large. */
export interface Head {
  readonly kind: "string" | "hash" | "zset";
  /** When it expires, in ms since 1970; null: never. */
  readonly deadline: number | null;
}
/** A key with its value. */
export interface Entry extends Head {
  readonly value: Value;
}
/** Where keys are stored. What has expired is still there. */
export interface Storage {
  /** Undefined: the key is not there. */
  head(key: string): Head | undefined;
  /** The same, with the value. Undefined: the key is not there. */
  entry(key: string): Entry | undefined;
  /** Stores a value of any kind, in place of what is there. */
  write(key: string, value: Value, deadline: number | null): void;
  /** Gives a key that is there another deadline. */
  setDeadline(key: string, deadline: number): void;
  delete(key: string): void;
}
