import { ReplyError } from "./reply.ts";

/** What each type of key holds. Strings everywhere are byte strings (bytes.ts). */
export interface Values {
  string: string;
  hash: Map<string, string>;
  set: Set<string>;
  zset: Map<string, number>;
  list: string[];
}

/** The types of keys, as TYPE names them. */
export type ValueType = keyof Values;

/** One key's value and when it ends. */
export type Entry = {
  [Type in ValueType]: {
    readonly type: Type;
    value: Values[Type];
    /** ms since 1970, or undefined: it does not expire. */
    deadline: number | undefined;
    /** Counts up with every key that is created, so that SCAN can go on where it was. */
    readonly serial: number;
  };
}[ValueType];

/**
 * All keys of one database. Expiry is lazy: a key is gone from the ms of its deadline on, whether or not
 * anybody has looked. The clock is read once per command and stands still while it runs, as in Redis.
 */
export class Keyspace {
  /** ms since 1970, while a command runs. */
  now = 0;
  readonly #entries = new Map<string, Entry>();
  #serial = 0;

  /** The entry of a key that exists and has not expired. */
  entry(key: string): Entry | undefined {
    const entry = this.#entries.get(key);
    if (entry?.deadline === undefined || entry.deadline > this.now) return entry;
    this.#entries.delete(key);
    return undefined;
  }

  /**
   * The value of a key, or undefined when there is none.
   *
   * @throws ReplyError `WRONGTYPE` when it is of another type
   */
  value<Type extends ValueType>(key: string, type: Type): Values[Type] | undefined {
    const entry = this.entry(key);
    if (!entry) return undefined;
    if (entry.type !== type) throw wrongType();
    return entry.value as Values[Type];
  }

  /**
   * The collection at a key, made empty when there is none. Call {@link tidy} when it may have stayed empty.
   *
   * @throws ReplyError `WRONGTYPE` when it is of another type
   */
  collection<Type extends Exclude<ValueType, "string">>(key: string, type: Type): Values[Type] {
    const found = this.value(key, type);
    if (found !== undefined) return found;
    const made = { hash: () => new Map(), set: () => new Set(), zset: () => new Map(), list: () => [] }[
      type
    ]();
    this.put(key, type, made as Values[Type], undefined);
    return made as Values[Type];
  }

  /** Removes the key if its collection is empty: Redis has no empty collections. */
  tidy(key: string): void {
    const value = this.#entries.get(key)?.value;
    if (value === undefined || typeof value === "string") return;
    if ((Array.isArray(value) ? value.length : value.size) === 0) this.#entries.delete(key);
  }

  /** Sets a key, whatever it was before. A `deadline` that has passed removes it. */
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

  /** Changes when an existing key ends. A `deadline` that has passed removes it at once. */
  expire(key: string, deadline: number | undefined): void {
    const entry = this.entry(key);
    if (!entry) return;
    entry.deadline = deadline;
    this.entry(key);
  }

  /** Whether the key existed. */
  delete(key: string): boolean {
    return this.entry(key) !== undefined && this.#entries.delete(key);
  }

  /** Every key that has not expired, in the order of creation. */
  keys(): string[] {
    return [...this.#entries.keys()].filter((key) => this.entry(key) !== undefined);
  }

  clear(): void {
    this.#entries.clear();
  }
}

function wrongType(): ReplyError {
  return new ReplyError("WRONGTYPE Operation against a key holding the wrong kind of value");
}
