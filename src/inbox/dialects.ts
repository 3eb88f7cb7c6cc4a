import { toHex } from "../runtime/bytes.ts";
import { randomToken, systemRuntime } from "../runtime/runtime.ts";
import type { Mark } from "./entry.ts";

/** One statement with its values, which stand in it once each, in this order. All are texts: no client changes them. */
export type Step = readonly [sql: string, params: readonly string[]];

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
  raise(mark: Mark): readonly Step[];
  /** Deletes rows of one table that are older than so many ms, at most `limit` of them. */
  prune(table: InboxTable, olderThan: number, limit: number): Step;
}

/** The tables of this module, and the name of what each row is about. */
export const tables = [
  { table: "redlock_inbox", name: "key" },
  { table: "redlock_fences", name: "entity" },
  { table: "redlock_versions", name: "entity" },
] as const;
export type InboxTable = (typeof tables)[number];

/** SQLite's message about a table of this module. D1 adds its code. At the end: libraries put values into their messages. */
export const noTable: RegExp = /no such table: redlock_\w+(: SQLITE_ERROR)?$/;

/** The error where a table of this module is missing. */
export function missingTables({ schema }: Dialect, cause: unknown): Error {
  return new Error(`the tables of the inbox are not in this database: apply ${schema}`, { cause });
}

/** Statements that Postgres and SQLite share but for how a number is written. */
const upsert = (kind: Mark["kind"], first: string, number: string) =>
  `INSERT INTO redlock_${kind}s (entity, ${kind}) VALUES (${first}, ${number}) ON CONFLICT (entity) DO UPDATE SET`;

const raiseIfLower = (kind: Mark["kind"], first: string, number: string) =>
  `${upsert(kind, first, number)} ${kind} = excluded.${kind}, at = excluded.at
  WHERE redlock_${kind}s.${kind} <= excluded.${kind} RETURNING 1 AS raised`;

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
  raise: ({ kind, entity, number }) => [
    [raiseIfLower(kind, "$1", "$2::text::bigint"), [entity, `${number}`]],
  ],
  prune: ({ table, name }, olderThan, limit) => [
    `DELETE FROM ${table} WHERE ${name} IN (SELECT ${name} FROM ${table}
      WHERE at < now() - $1::text::float8 * interval '1 millisecond' ORDER BY at LIMIT ${limit})`,
    [`${olderThan}`],
  ],
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
  raise: ({ kind, entity, number }) => [[raiseIfLower(kind, "?", sqliteInteger), [entity, `${number}`]]],
  prune: ({ table, name }, olderThan, limit) => [
    name === "key"
      ? // The order of the rows is that of time: no index is needed, which would cost a written row for each delivery.
        `DELETE FROM ${table} WHERE rowid IN (
      SELECT number FROM (SELECT rowid AS number, at FROM ${table} ORDER BY rowid LIMIT ${limit})
      WHERE at < unixepoch() * 1000 - CAST(? AS REAL))`
      : `DELETE FROM ${table} WHERE ${name} IN (
      SELECT ${name} FROM ${table} WHERE at < unixepoch() * 1000 - CAST(? AS REAL) ORDER BY at LIMIT ${limit})`,
    [`${olderThan}`],
  ],
};

/** Raises a mark in SQLite. Where it is higher already, this fails: it becomes null, which the column refuses. */
export const raiseOrFail = (kind: Mark["kind"]): string =>
  `${upsert(kind, "?", sqliteInteger)}
    ${kind} = CASE WHEN excluded.${kind} >= redlock_${kind}s.${kind} THEN excluded.${kind} END, at = excluded.at`;

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
  raise: ({ kind, entity, number }) => {
    const [table, integer] = [`redlock_${kind}s`, "CAST(? AS SIGNED)"];
    const [bytes, value] = [hexOf(entity), `${number}`];
    return [
      [
        `INSERT INTO ${table} (entity, ${kind}) VALUES (UNHEX(?), ${integer}) ON DUPLICATE KEY UPDATE
  at = IF(${integer} >= ${kind}, UTC_TIMESTAMP(3), at), ${kind} = GREATEST(${kind}, ${integer})`,
        [bytes, value, value, value],
      ],
      // With a lock, because without one it may read the transaction's first snapshot.
      [
        `SELECT 1 AS raised FROM ${table} WHERE entity = UNHEX(?) AND ${kind} = ${integer} FOR UPDATE`,
        [bytes, value],
      ],
    ];
  },
  prune: ({ table }, olderThan, limit) => [
    `DELETE FROM ${table} WHERE at < UTC_TIMESTAMP(3) - INTERVAL CAST(? AS DECIMAL(20, 3)) SECOND
      ORDER BY at LIMIT ${limit}`,
    [`${olderThan / 1_000}`],
  ],
};
