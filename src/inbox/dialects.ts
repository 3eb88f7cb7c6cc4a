import { toHex } from "../bytes.ts";
import { randomToken, systemRuntime } from "../runtime.ts";

/** One statement with its values, which stand in it once each, in this order. All are texts: no client changes them. */
export type Step = readonly [sql: string, params: readonly string[]];

/** A number that only grows, for each entity: in the table `redlock_fences` or `redlock_versions`. */
export type Mark = "fence" | "version";

/** The statements of one database, on the tables of this module. */
export interface Dialect {
  /** What to apply where a table is missing. */
  readonly schema: string;
  /** Fails where no transaction is open, and changes nothing. Not every database can tell. */
  readonly requireTransaction: readonly Step[];
  /** Inserts a key. The last step returns a row if the key was not there. */
  insertKey(key: string): readonly Step[];
  /** Undoes `insertKey`. */
  deleteKey(key: string): Step;
  /** Raises an entity's mark, unless it is higher. The last step returns a row if it was not. */
  raise(mark: Mark, entity: string, number: bigint): readonly Step[];
}

/** Statements that Postgres and SQLite share but for how a number is written. */
const upsert = (mark: Mark, first: string, number: string) =>
  `INSERT INTO redlock_${mark}s (entity, ${mark}) VALUES (${first}, ${number}) ON CONFLICT (entity) DO UPDATE SET`;

const raiseIfLower = (mark: Mark, first: string, number: string) =>
  `${upsert(mark, first, number)} ${mark} = excluded.${mark}, at = excluded.at
  WHERE redlock_${mark}s.${mark} <= excluded.${mark} RETURNING 1 AS raised`;

export const postgres: Dialect = {
  schema: "postgresSchema",
  // The lock that the insertion takes anyway.
  requireTransaction: [["LOCK TABLE redlock_inbox IN ROW EXCLUSIVE MODE", []]],
  // Waits for the end of a concurrent transaction that has inserted the key.
  insertKey: (key) => [
    [
      `INSERT INTO redlock_inbox (key) VALUES ($1) ON CONFLICT DO NOTHING
  RETURNING txid_current()::text AS transaction`,
      [key],
    ],
  ],
  deleteKey: (key) => ["DELETE FROM redlock_inbox WHERE key = $1", [key]],
  // By way of text: a client that asks Postgres for the types would otherwise need a number.
  raise: (mark, entity, number) => [[raiseIfLower(mark, "$1", "$2::text::bigint"), [entity, `${number}`]]],
};

/** As an expression, because D1 takes no bigint. */
const sqliteInteger = "CAST(? AS INTEGER)";

export const sqlite: Dialect = {
  schema: "d1Schema",
  requireTransaction: [],
  insertKey: (key) => [
    ["INSERT INTO redlock_inbox (key) VALUES (?) ON CONFLICT DO NOTHING RETURNING 1 AS inserted", [key]],
  ],
  deleteKey: (key) => ["DELETE FROM redlock_inbox WHERE key = ?", [key]],
  raise: (mark, entity, number) => [[raiseIfLower(mark, "?", sqliteInteger), [entity, `${number}`]]],
};

/** Raises a mark in SQLite. Where it is higher already, this fails: it becomes null, which the column refuses. */
export const raiseOrFail = (mark: Mark): string =>
  `${upsert(mark, "?", sqliteInteger)}
    ${mark} = CASE WHEN excluded.${mark} >= redlock_${mark}s.${mark} THEN excluded.${mark} END, at = excluded.at`;

/** In ASCII, because a connection may have another character set, or another way to escape. */
const hexOf = (text: string) => toHex(new TextEncoder().encode(text));

export const mysql: Dialect = {
  schema: "mysqlSchema",
  // Outside of a transaction a savepoint is forgotten at once, and the second statement does not find it.
  requireTransaction: [
    ["SAVEPOINT redlock_inbox", []],
    ["RELEASE SAVEPOINT redlock_inbox", []],
  ],
  // Not INSERT IGNORE, which also ignores that a value does not fit.
  insertKey: (key) => {
    const [bytes, attempt] = [hexOf(key), randomToken(systemRuntime)];
    return [
      [
        "INSERT INTO redlock_inbox (`key`, attempt) VALUES (UNHEX(?), ?) ON DUPLICATE KEY UPDATE attempt = attempt",
        [bytes, attempt],
      ],
      ["SELECT 1 AS inserted FROM redlock_inbox WHERE `key` = UNHEX(?) AND attempt = ?", [bytes, attempt]],
    ];
  },
  deleteKey: (key) => ["DELETE FROM redlock_inbox WHERE `key` = UNHEX(?)", [hexOf(key)]],
  raise: (mark, entity, number) => {
    const [table, integer] = [`redlock_${mark}s`, "CAST(? AS SIGNED)"];
    const [bytes, value] = [hexOf(entity), `${number}`];
    return [
      [
        `INSERT INTO ${table} (entity, ${mark}) VALUES (UNHEX(?), ${integer}) ON DUPLICATE KEY UPDATE
  at = IF(${integer} >= ${mark}, UTC_TIMESTAMP(3), at), ${mark} = GREATEST(${mark}, ${integer})`,
        [bytes, value, value, value],
      ],
      // With a lock, because without one it may read what the transaction saw at its beginning.
      [
        `SELECT 1 AS raised FROM ${table} WHERE entity = UNHEX(?) AND ${mark} = ${integer} FOR UPDATE`,
        [bytes, value],
      ],
    ];
  },
};
