import { Hash } from "./hash-value.ts";
import { ReplyError } from "./reply.ts";
import type { Stream } from "./stream-value.ts";

/** The value of each type of key. All strings are byte strings (see bytes.ts). */
export interface Values {
  string: string;
  hash: Hash;
  set: Set<string>;
  zset: Map<string, number>;
  list: string[];
  stream: Stream;
}

/** The types of keys, as TYPE returns them. */
export type ValueType = keyof Values;

/** The types whose values are never empty: Redis deletes such a key. */
type CollectionType = Exclude<ValueType, "string" | "stream">;

/** The value of one key and its expiry. */
export type Entry = {
  [Type in ValueType]: {
    readonly type: Type;
    value: Values[Type];
    /** When it expires, in ms since 1970; undefined: never. */
    deadline: number | undefined;
    /** Number of the key in the order of creation, as the cursor of SCAN. */
    readonly serial: number;
  };
}[ValueType];

/**
 * All keys of one database. A key does not exist from the ms of its deadline on; it is removed at the next access. The
 * time stays the same while a command runs, as in Redis.
 */
export class Keyspace {
  /** A number in [0, 1), for commands that draw. */
  readonly random: () => number;
  /** The time of the current command, in ms since 1970. */
  now = 0;
  readonly #entries = new Map<string, Entry>();
  #serial = 0;

  constructor(random: () => number) {
    this.random = random;
  }

  /** The entry of a key that exists and has not expired. */
  entry(key: string): Entry | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined || !hasEnded(entry, this.now)) return entry;
    this.#entries.delete(key);
    return undefined;
  }

  /**
   * The value of a key; undefined if it does not exist.
   *
   * @throws ReplyError `WRONGTYPE` if it has another type
   */
  value<Type extends ValueType>(key: string, type: Type): Values[Type] | undefined {
    const entry = this.entry(key);
    if (!entry) return undefined;
    if (entry.type !== type) throw wrongType();
    return entry.value as Values[Type];
  }

  /**
   * The collection of a key, created empty if it does not exist. Call {@link tidy} afterwards if it may be empty.
   *
   * @throws ReplyError `WRONGTYPE` if it has another type
   */
  collection<Type extends CollectionType>(key: string, type: Type): Values[Type] {
    const found = this.value(key, type);
    if (found !== undefined) return found;
    const created = { hash: () => new Hash(), set: () => new Set(), zset: () => new Map(), list: () => [] }[
      type
    ]();
    this.put(key, type, created as Values[Type], undefined);
    return created as Values[Type];
  }

  /** Deletes a key whose collection is empty: Redis has no empty collections. */
  tidy(key: string): void {
    const entry = this.#entries.get(key);
    if (entry === undefined || entry.type === "string" || entry.type === "stream") return;
    if (sizeOf(entry.value) === 0) this.#entries.delete(key);
  }

  /** Sets a key of any or no previous type. A `deadline` in the past deletes it. */
  put<Type extends ValueType>(
    key: string,
    type: Type,
    value: Values[Type],
    deadline: number | undefined,
  ): void {
    const serial = this.entry(key)?.serial ?? ++this.#serial;
    this.#entries.set(key, { type, value, deadline, serial } as Entry);
    this.entry(key);
  }

  /** Replaces a key of any or no previous type by a collection; an empty one deletes it. Returns its size. */
  store<Type extends CollectionType>(key: string, type: Type, value: Values[Type]): number {
    this.delete(key);
    this.put(key, type, value, undefined);
    this.tidy(key);
    return sizeOf(value);
  }

  /** Changes the deadline of an existing key; undefined: none. A `deadline` in the past deletes the key. */
  expire(key: string, deadline: number | undefined): void {
    const entry = this.entry(key);
    if (!entry) return;
    entry.deadline = deadline;
    this.entry(key);
  }

  /** Deletes a key and returns whether it existed. */
  delete(key: string): boolean {
    return this.entry(key) !== undefined && this.#entries.delete(key);
  }

  /** Every key that has not expired, in the order of creation. */
  keys(): string[] {
    return [...this.#entries.keys()].filter((key) => this.entry(key) !== undefined);
  }

  /** Deletes all keys. */
  clear(): void {
    this.#entries.clear();
  }
}

/** Whether the key has expired, or the last field of its hash has. */
function hasEnded(entry: Entry, now: number): boolean {
  if (entry.deadline !== undefined && entry.deadline <= now) return true;
  return entry.type === "hash" && entry.value.sweep(now) && entry.value.size === 0;
}

function sizeOf(value: Values[CollectionType]): number {
  return Array.isArray(value) ? value.length : value.size;
}

function wrongType(): ReplyError {
  return new ReplyError("WRONGTYPE Operation against a key holding the wrong kind of value");
}
