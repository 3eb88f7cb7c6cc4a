import type { Head, Storage } from "./storage.ts";
import type { Hash, SortedSet, Value } from "./values.ts";
/** The keys of one server. A key does not exist from the ms of its deadline on, though it stays where it is stored. */
export declare class Keyspace {
  #private;
  /** The time of the current command, in ms since 1970. */
  now: number;
  constructor(storage: Storage);
  /** Undefined: the key does not exist. */
  head(key: string): Head | undefined;
  /** Undefined: the key does not exist. A collection must not be changed: see {@link collection}. */
  value(key: string): Value | undefined;
  /** @throws ReplyError where the key holds something else */
  text(key: string): string | undefined;
  /** A copy; an empty one where the key does not exist. @throws ReplyError where the key holds something else */
  collection<Kind extends Hash | SortedSet>(key: string, kind: new (from?: Kind) => Kind): Kind;
  /** Sets a key of any or no kind. A deadline that has passed, and an empty collection, delete it. */
  put(key: string, value: Value, deadline: number | null): void;
  /** Gives a key another deadline, one that has passed deletes it. Returns whether the key existed. */
  expire(key: string, deadline: number): boolean;
  /** Returns whether the key existed. */
  delete(key: string): boolean;
}
