import { toHex } from "../runtime/bytes.ts";
import { randomToken, systemRuntime } from "../runtime/runtime.ts";
import type { Mark } from "./entry.ts";

/** All values are strings, which no client changes. */
export type Step = readonly [sql: string, params: readonly string[]];

export interface Dialect {
  readonly schema: string;
  /** Not every database can tell. */
  readonly requireTransaction: readonly Step[];
  /** The last step returns a row if the key was not there. */
  insertKey(key: string): readonly Step[];
  deleteKey(key: string): Step;
  /** The last step returns a row unless the entity's mark is higher. */
  raise(mark: Mark): readonly Step[];
  prune(table: InboxTable, olderThan: number, limit: number): Step;
}

export const tables = [
  { table: "redlock_inbox", name: "key" },
  { table: "redlock_fences", name: "entity" },
  { table: "redlock_versions", name: "entity" },
] as const;
export type InboxTable = (typeof tables)[number];

/** With D1's code. At the end, because libraries put values into their messages. */
export const noTable: RegExp = /no such table: redlock_\w+(: SQLITE_ERROR)?$/;

export function missingTables({ schema }: Dialect, cause: unknown): Error {
  return new Error(`the tables of the inbox are not in this database: apply ${schema}`, { cause });
}

const upsert = (kind: Mark["kind"], first: string, number: string) =>
  `INSERT INTO redlock_${kind}s (entity, ${kind}) VALUES (${first}, ${number}) ON CONFLICT (entity) DO UPDATE SET`;

const raiseIfLower = (kind: Mark["kind"], first: string, number: string) =>
  `${upsert(kind, first, number)} ${kind} = excluded.${kind}, at = excluded.at
  WHERE redlock_${kind}s.${kind} <= excluded.${kind} RETURNING 1 AS raised`;

export const postgres: Dialect = {
  schema: "postgresSchema",
  requireTransaction: [["LOCK TABLE redlock_inbox IN ROW EXCLUSIVE MODE", []]],
  // Waits for a concurrent transaction that has inserted the key.
  insertKey: (key) => [
    [
      `INSERT INTO redlock_inbox (key) VALUES ($1) ON CONFLICT DO NOTHING
  RETURNING txid_current()::text AS transaction`,
      [key],
    ],
  ],
  deleteKey: (key) => ["DELETE FROM redlock_inbox WHERE key = $1", [key]],
  // A client that asks Postgres for types would otherwise need a number.
  raise: ({ kind, entity, number }) => [
    [raiseIfLower(kind, "$1", "$2::text::bigint"), [entity, `${number}`]],
  ],
  prune: ({ table, name }, olderThan, limit) => [
    `DELETE FROM ${table} WHERE ${name} IN (SELECT ${name} FROM ${table}
      WHERE at < now() - $1::text::float8 * interval '1 millisecond' ORDER BY at LIMIT ${limit})`,
    [`${olderThan}`],
  ],
};

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
      ? // Rows are in the order of time, and an index would cost a written row per delivery.
        `DELETE FROM ${table} WHERE rowid IN (
      SELECT number FROM (SELECT rowid AS number, at FROM ${table} ORDER BY rowid LIMIT ${limit})
      WHERE at < unixepoch() * 1000 - CAST(? AS REAL))`
      : `DELETE FROM ${table} WHERE ${name} IN (
      SELECT ${name} FROM ${table} WHERE at < unixepoch() * 1000 - CAST(? AS REAL) ORDER BY at LIMIT ${limit})`,
    [`${olderThan}`],
  ],
};

/** If the mark is higher, it becomes null, which the column refuses. */
export const raiseOrFail = (kind: Mark["kind"]): string =>
  `${upsert(kind, "?", sqliteInteger)}
    ${kind} = CASE WHEN excluded.${kind} >= redlock_${kind}s.${kind} THEN excluded.${kind} END, at = excluded.at`;

const hexOf = (text: string) => toHex(new TextEncoder().encode(text));

export const mysql: Dialect = {
  schema: "mysqlSchema",
  // Outside of a transaction a savepoint is forgotten at once.
  requireTransaction: [
    ["SAVEPOINT redlock_inbox", []],
    ["RELEASE SAVEPOINT redlock_inbox", []],
  ],
  // INSERT IGNORE also ignores values that do not fit.
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
      // Without a lock it may read the transaction's first snapshot.
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
