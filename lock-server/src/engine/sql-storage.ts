import { ReplyError } from "./reply-error.ts";
import type { Entry, Storage } from "./storage.ts";
import { Hash, SortedSet, type Value } from "./values.ts";

/** The part of a Durable Object's SQLite storage that holds the keys. */
export interface Sql {
  /** Runs one statement at once. */
  exec(query: string, ...values: (string | number | null)[]): { toArray(): Record<string, unknown>[] };
}

const schema = `CREATE TABLE IF NOT EXISTS entries (
  key TEXT NOT NULL PRIMARY KEY,
  kind TEXT NOT NULL,
  value TEXT NOT NULL,
  deadline INTEGER
) WITHOUT ROWID`;

/** The most bytes of a value: a row of the storage may have 2 MB with its key. */
const largest = 1_900_000;

/**
 * Keys in a Durable Object, each a row of SQLite. What has expired stays until it is asked for or swept. Each change writes
 * one row, because rows written are what the platform bills.
 */
export class SqlStorage implements Storage {
  readonly #sql: Sql;
  /** Called when something is written that will expire. */
  onExpiring: () => void = () => undefined;

  constructor(sql: Sql) {
    this.#sql = sql;
    sql.exec(schema);
  }

  entry(key: string): Entry | undefined {
    const [row] = this.#sql.exec("SELECT * FROM entries WHERE key = ?", key).toArray() as unknown as Row[];
    return row && { value: decode(row), deadline: row.deadline };
  }

  write(key: string, value: Value, deadline: number | null): void {
    const [kind, text] = encode(value);
    // A character has up to three bytes.
    if (text.length > largest / 3 && new TextEncoder().encode(text).length > largest) {
      throw new ReplyError(`ERR max value size of ${largest} bytes exceeded`);
    }
    this.#sql.exec(
      "INSERT OR REPLACE INTO entries (key, kind, value, deadline) VALUES (?, ?, ?, ?)",
      ...[key, kind, text, deadline],
    );
    if (deadline !== null) this.onExpiring();
  }

  setDeadline(key: string, deadline: number): void {
    this.#sql.exec("UPDATE entries SET deadline = ? WHERE key = ?", deadline, key);
    this.onExpiring();
  }

  delete(key: string): void {
    this.#sql.exec("DELETE FROM entries WHERE key = ?", key);
  }

  /** Deletes what has expired. Returns whether anything is left that will expire. */
  sweep(now: number): boolean {
    this.#sql.exec("DELETE FROM entries WHERE deadline <= ?", now);
    return this.#sql.exec("SELECT 1 FROM entries WHERE deadline IS NOT NULL LIMIT 1").toArray().length > 0;
  }
}

interface Row {
  readonly kind: "string" | "hash" | "zset";
  readonly value: string;
  readonly deadline: number | null;
}

function encode(value: Value): readonly [kind: Row["kind"], text: string] {
  if (typeof value === "string") return ["string", value];
  return [value instanceof Hash ? "hash" : "zset", JSON.stringify([...value])];
}

function decode({ kind, value }: Row): Value {
  if (kind === "string") return value;
  return kind === "hash" ? new Hash(JSON.parse(value)) : new SortedSet(JSON.parse(value));
}
