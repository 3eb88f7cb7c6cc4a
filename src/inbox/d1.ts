import { wrongType } from "../check.ts";
import {
  checkPrune,
  type InboxEntry,
  type InboxOutcome,
  type InboxRow,
  type PruneOptions,
  rowOf,
  StaleFenceError,
} from "./entry.ts";

/** A prepared statement of D1 with its values. */
export interface D1Statement {
  /** The first row. */
  first(): Promise<unknown>;
}

/** What is used of D1's binding, a `D1Database`. Not a session of it: what a session reads may be old. */
export interface D1<Statement extends D1Statement, Result> {
  /** A statement, whose values are still to come. */
  prepare(sql: string): {
    /** The statement with its values. */
    bind(...values: unknown[]): Statement;
  };
  /** Runs the statements in one transaction: an error of one of them undoes all. */
  batch(statements: Statement[]): Promise<Result[]>;
}

/**
 * The tables in D1 (SQLite). Every statement can be repeated. `at` is in ms since 1970, by the database's clock.
 *
 * `redlock_inbox` has a row for each delivery whose effect is committed, `redlock_fences` the highest fence that has
 * written to each entity.
 */
export const d1Schema = `CREATE TABLE IF NOT EXISTS redlock_inbox (
  key TEXT NOT NULL PRIMARY KEY,
  at INTEGER NOT NULL DEFAULT (unixepoch() * 1000)
) STRICT;

CREATE TABLE IF NOT EXISTS redlock_fences (
  entity TEXT NOT NULL PRIMARY KEY,
  fence INTEGER NOT NULL,
  at INTEGER NOT NULL DEFAULT (unixepoch() * 1000)
) STRICT;

CREATE INDEX IF NOT EXISTS redlock_fences_at ON redlock_fences (at);
`;

const insertKey = "INSERT INTO redlock_inbox (key) VALUES (?1)";

// A lower fence makes it null, which the column refuses, and that undoes the batch. As text, because D1 takes no bigint.
const raiseFence = `INSERT INTO redlock_fences (entity, fence) VALUES (?1, CAST(?2 AS INTEGER))
  ON CONFLICT (entity) DO UPDATE SET
    fence = CASE WHEN excluded.fence >= redlock_fences.fence THEN excluded.fence END, at = excluded.at`;

const findEntry = `SELECT EXISTS (SELECT 1 FROM redlock_inbox WHERE key = ?1) AS repeated,
  EXISTS (SELECT 1 FROM redlock_fences WHERE entity = ?2 AND fence > CAST(?3 AS INTEGER)) AS stale`;

/**
 * Commits an effect in D1 together with its delivery's key, in one batch: both or neither, and once per key. The table
 * decides; neither a lock nor an answer of Redis is needed for that.
 *
 * Of two concurrent calls one commits, and the other finds its key. When D1's answer is lost, this asks the table: if
 * the batch was committed after all, the outcome is `first: false`, as it is for the next attempt.
 *
 * @param effect the statements, run in this order after the key is inserted; `result` has one result for each
 * @throws {StaleFenceError} a newer holder has written to the entity
 * @throws what D1 throws, such as for a statement that violates a constraint of your tables; nothing is written then, or,
 * where D1 cannot be reached, it is unknown, and the next attempt finds out
 * @throws TypeError | RangeError when the entry is wrong
 *
 * @example
 * const paid = env.DB.prepare("UPDATE invoices SET paid = 1 WHERE id = ?1").bind(invoice);
 * const { first } = await onceInD1(env.DB, { key: deliveryKey(c.var.webhook) }, [paid]);
 */
export async function onceInD1<Statement extends D1Statement, Result>(
  db: D1<Statement, Result>,
  entry: InboxEntry,
  effect: readonly Statement[],
): Promise<InboxOutcome<Result[]>> {
  const row = rowOf(entry);
  checkDatabase(db);
  checkStatements(effect);
  const { key, fenced } = row;
  const own = [
    db.prepare(insertKey).bind(key),
    ...(fenced ? [db.prepare(raiseFence).bind(fenced.entity, `${fenced.fence}`)] : []),
  ];
  try {
    const results = await db.batch([...own, ...effect]);
    return { first: true, result: results.slice(own.length) };
  } catch (error) {
    // The tables say what failed, not the error's text, which the statements of the effect may share.
    const found = await find(db, row).catch((cause: unknown) => {
      throwIfMissing(cause);
    });
    if (found?.repeated) return { first: false };
    if (found?.stale && fenced) throw new StaleFenceError(fenced.entity, fenced.fence);
    throw error;
  }
}

function checkDatabase(db: unknown): void {
  const { prepare, batch } = Object(db);
  if (typeof prepare === "function" && typeof batch === "function") return;
  throw wrongType("db", db, "a D1 database, for example env.DB; is it in the Wrangler configuration?");
}

function checkStatements(effect: readonly D1Statement[]): void {
  if (!Array.isArray(effect)) throw wrongType("effect", effect, "an array of statements");
  for (const [index, statement] of effect.entries()) {
    if (typeof Object(statement).first === "function") continue;
    throw wrongType(`effect[${index}]`, statement, "a statement that was not run: db.prepare(sql).bind(…)");
  }
}

/** @throws Error where a statement failed that is only about the tables of this module, because they are not there */
function throwIfMissing(cause: unknown): void {
  if (!/no such table: redlock_/.test(String(cause))) return;
  throw new Error("the tables of the inbox are not in this database: apply d1Schema", { cause });
}

async function find<Statement extends D1Statement, Result>(
  db: D1<Statement, Result>,
  { key, fenced }: InboxRow,
): Promise<{ readonly repeated: number; readonly stale: number }> {
  const found = db.prepare(findEntry).bind(key, fenced?.entity ?? null, fenced ? `${fenced.fence}` : null);
  return (await found.first()) as { repeated: number; stale: number };
}

/**
 * Deletes rows that are older than `olderThan`: of each table at most `limit`, and no more are read.
 *
 * @throws TypeError | RangeError when an argument is wrong
 *
 * @example
 * await pruneD1(env.DB, { olderThan: 30 * 86_400_000 }); // once a day
 */
export async function pruneD1<Statement extends D1Statement, Result>(
  db: D1<Statement, Result>,
  options: PruneOptions,
): Promise<void> {
  const { olderThan, limit } = checkPrune("pruneD1", options);
  checkDatabase(db);
  const statements = [
    // The order of the rows is that of time: no index is needed, which would cost a written row for each delivery.
    db
      .prepare(`DELETE FROM redlock_inbox WHERE rowid IN (
        SELECT number FROM (SELECT rowid AS number, at FROM redlock_inbox ORDER BY rowid LIMIT ?2)
        WHERE at < unixepoch() * 1000 - ?1)`)
      .bind(olderThan, limit),
    db
      .prepare(`DELETE FROM redlock_fences WHERE entity IN (
        SELECT entity FROM redlock_fences WHERE at < unixepoch() * 1000 - ?1 ORDER BY at LIMIT ?2)`)
      .bind(olderThan, limit),
  ];
  try {
    await db.batch(statements);
  } catch (error) {
    throwIfMissing(error);
    throw error;
  }
}
