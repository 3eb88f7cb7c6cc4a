import { CommandError, wrongType } from "./command-error.ts";
import { LimitExceeded, mostWork } from "./limits.ts";

/** The part of a Durable Object's SQLite storage that holds the keys. */
export interface SqlStorage {
  /** Runs one statement at once. */
  exec(query: string, ...values: (string | number | null)[]): { toArray(): Record<string, unknown>[] };
}

/** What a key can hold. */
export type Value = string | Hash | SortedSet;

/** The fields of a hash. */
export class Hash extends Map<string, string> {}

/** Members with their scores. */
export class SortedSet extends Map<string, number> {}

/** What is known of a key without its value, which may be large. */
interface Head {
  /** How many characters the value has as it is stored. */
  readonly size: number;
  readonly kind: "string" | "hash" | "zset";
  /** When it expires, in ms since 1970; null: never. */
  readonly deadline: number | null;
}

const schema = `CREATE TABLE IF NOT EXISTS entries (
  key TEXT NOT NULL PRIMARY KEY,
  kind TEXT NOT NULL,
  value TEXT NOT NULL,
  size INTEGER NOT NULL,
  deadline INTEGER
) WITHOUT ROWID`;

/** The most bytes of a value: a row of the storage may have 2 MB with its key. */
const largest = 1_900_000;

/**
 * The keys of one object, each a row of SQLite. A key does not exist from the ms of its deadline on; its row stays until it
 * is asked for or swept. Each change writes one row, because rows written are what the platform bills.
 */
export class Keyspace {
  readonly #sql: SqlStorage;
  /** The time of the current command, in ms since 1970. */
  now = 0;
  /** How many characters of values were read and written since somebody has set it to 0. */
  work = 0;
  /** Called when something is written that will expire. */
  onExpiring: () => void = () => undefined;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    sql.exec(schema);
  }

  /** Undefined: the key does not exist. */
  head(key: string): Head | undefined {
    return this.#find<Head>("kind, size, deadline", key);
  }

  value(key: string): Value | undefined {
    const row = this.#find<Head & { readonly value: string }>("kind, size, deadline, value", key);
    return row && decode(row.kind, row.value);
  }

  #find<Row extends Head>(columns: string, key: string): Row | undefined {
    const [row] = this.#sql
      .exec(`SELECT ${columns} FROM entries WHERE key = ?`, key)
      .toArray() as unknown as Row[];
    // SQLite reads the whole row, whatever the columns.
    this.work += row?.size ?? 0;
    if (this.work > mostWork) throw new LimitExceeded(`max work of ${mostWork} characters of values`);
    if (!row || row.deadline === null || row.deadline > this.now) return row;
    // Now, because a clock that is set back must not bring back what somebody was told to be gone.
    this.#sql.exec("DELETE FROM entries WHERE key = ?", key);
    return undefined;
  }

  /** @throws CommandError where the key holds something else */
  text(key: string): string | undefined {
    const value = this.value(key);
    if (value === undefined || typeof value === "string") return value;
    throw wrongType();
  }

  /** A copy; an empty one where the key does not exist. @throws CommandError where the key holds something else */
  collection<Kind extends Hash | SortedSet>(key: string, kind: new () => Kind): Kind {
    const value = this.value(key) ?? new kind();
    if (value instanceof kind) return value;
    throw wrongType();
  }

  /** Sets a key of any or no kind. A deadline that has passed, and an empty collection, delete it. */
  put(key: string, value: Value, deadline: number | null): void {
    const isEmpty = typeof value !== "string" && value.size === 0;
    if (isEmpty || (deadline !== null && deadline <= this.now)) {
      this.delete(key);
      return;
    }
    const [kind, text] = encode(value);
    // A character has up to three bytes.
    if (text.length > largest / 3 && new TextEncoder().encode(text).length > largest) {
      throw new CommandError(`ERR max value size of ${largest} bytes exceeded`);
    }
    this.work += text.length;
    this.#sql.exec(
      "INSERT OR REPLACE INTO entries (key, kind, value, size, deadline) VALUES (?, ?, ?, ?, ?)",
      ...[key, kind, text, text.length, deadline],
    );
    if (deadline !== null) this.onExpiring();
  }

  /** Gives a key another deadline, one that has passed deletes it. Returns whether the key existed. */
  expire(key: string, deadline: number): boolean {
    if (deadline <= this.now) return this.delete(key);
    if (!this.head(key)) return false;
    this.#sql.exec("UPDATE entries SET deadline = ? WHERE key = ?", deadline, key);
    this.onExpiring();
    return true;
  }

  /** Returns whether the key existed. */
  delete(key: string): boolean {
    const existed = this.head(key) !== undefined;
    if (existed) this.#sql.exec("DELETE FROM entries WHERE key = ?", key);
    return existed;
  }

  /** Deletes what has expired. Returns whether anything is left that will expire. */
  sweep(): boolean {
    this.#sql.exec("DELETE FROM entries WHERE deadline <= ?", this.now);
    return this.#sql.exec("SELECT 1 FROM entries WHERE deadline IS NOT NULL LIMIT 1").toArray().length > 0;
  }
}

function encode(value: Value): readonly [kind: Head["kind"], text: string] {
  if (typeof value === "string") return ["string", value];
  return [value instanceof Hash ? "hash" : "zset", JSON.stringify([...value])];
}

function decode(kind: Head["kind"], text: string): Value {
  if (kind === "string") return text;
  return kind === "hash" ? new Hash(JSON.parse(text)) : new SortedSet(JSON.parse(text));
}
