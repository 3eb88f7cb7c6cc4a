import type { Step } from "./dialects.ts";

/** The statements that delete rows older than `olderThan` ms, at most `limit` of each table. */
export type Prune = (olderThan: number, limit: number) => Step[];

const tables = [
  ["redlock_inbox", "key"],
  ["redlock_fences", "entity"],
  ["redlock_versions", "entity"],
] as const;

export const pruneOfPostgres: Prune = (olderThan, limit) =>
  tables.map(([table, name]) => [
    `DELETE FROM ${table} WHERE ${name} IN (SELECT ${name} FROM ${table}
      WHERE at < now() - $1::text::float8 * interval '1 millisecond' ORDER BY at LIMIT ${limit})`,
    [`${olderThan}`],
  ]);

export const pruneOfSqlite: Prune = (olderThan, limit) =>
  tables.map(([table, name]) => [
    name === "key"
      ? // The order of the rows is that of time: no index is needed, which would cost a written row for each delivery.
        `DELETE FROM ${table} WHERE rowid IN (
      SELECT number FROM (SELECT rowid AS number, at FROM ${table} ORDER BY rowid LIMIT ${limit})
      WHERE at < unixepoch() * 1000 - CAST(? AS REAL))`
      : `DELETE FROM ${table} WHERE ${name} IN (
      SELECT ${name} FROM ${table} WHERE at < unixepoch() * 1000 - CAST(? AS REAL) ORDER BY at LIMIT ${limit})`,
    [`${olderThan}`],
  ]);

export const pruneOfMysql: Prune = (olderThan, limit) =>
  tables.map(([table]) => [
    `DELETE FROM ${table} WHERE at < UTC_TIMESTAMP(3) - INTERVAL CAST(? AS DECIMAL(20, 3)) SECOND
      ORDER BY at LIMIT ${limit}`,
    [`${olderThan / 1_000}`],
  ]);
