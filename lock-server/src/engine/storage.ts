import type { Value } from "./values.ts";

/** What is stored at a key. */
export interface Entry {
  readonly value: Value;
  /** When it expires, in ms since 1970; null: never. */
  readonly deadline: number | null;
}

/** Where keys are stored. What has expired is still there. */
export interface Storage {
  /** Undefined: the key is not there. */
  entry(key: string): Entry | undefined;
  /** Stores a value of any kind, in place of what is there. */
  write(key: string, value: Value, deadline: number | null): void;
  /** Gives a key that is there another deadline. */
  setDeadline(key: string, deadline: number): void;
  delete(key: string): void;
}
