import {
  checkNumber,
  checkOptions,
  checkType,
  integer,
  oneOf,
  type Schema,
  tellOfSeconds,
} from "../check/check.ts";
import { type Dialect, mysql, postgres, sqlite, tables } from "./dialects.ts";
import { type Execute, enter, requireTransaction, runStep } from "./enter.ts";
import { type InboxEntry, type NotFirst, rowOf } from "./entry.ts";

/** Names the database. */
export interface DialectOptions {
  /** `mysql` is also MariaDB, `sqlite` also libSQL. Default `postgres`. */
  readonly dialect?: "postgres" | "mysql" | "sqlite" | undefined;
}

const dialectSchema: Schema<DialectOptions> = { dialect: oneOf("postgres", "mysql", "sqlite") };

const dialects: Readonly<Record<NonNullable<DialectOptions["dialect"]>, Dialect>> = {
  postgres,
  mysql,
  sqlite,
};

/**
 * Enters a delivery's key in an open transaction. If you get `first: false`, leave the effect out. The transaction
 * remains usable. After a deadlock or a serialization failure, run the whole transaction again.
 *
 * @param execute runs a statement in the transaction. Outside of one it is refused, except by SQLite, which cannot
 * tell: the key would be entered even if the effect fails
 * @throws {StaleFenceError} a newer holder has written to the entity: roll back
 * @throws the error of `execute`: roll back
 * @throws TypeError | RangeError an argument is wrong
 *
 * @example
 * await prisma.$transaction(async (tx) => {
 *   const execute: Execute = (sql, params) => tx.$queryRawUnsafe(sql, ...params);
 *   const { first } = await onceInTransaction(execute, { key: deliveryKey(delivery) });
 *   if (first) await tx.invoice.update({ where: { id }, data: { paid: true } });
 * });
 */
export async function onceInTransaction(
  execute: Execute,
  entry: InboxEntry,
  options: DialectOptions = {},
): Promise<{ readonly first: true } | NotFirst> {
  const row = rowOf(entry);
  checkType("execute", execute, "function");
  const { dialect: name = "postgres" } = checkOptions("onceInTransaction", options, dialectSchema);
  const dialect = dialects[name];
  await requireTransaction(execute, dialect);
  const entered = await enter(execute, row, dialect);
  return entered.first ? { first: true } : entered;
}

/** Options of {@link pruneInbox}. */
export interface PruneOptions extends DialectOptions {
  /**
   * In ms: longer than the sender retries, because a later delivery has its effect again, and than a process can be
   * frozen, because its late write is refused only while the newer fence is there.
   */
  readonly olderThan: number;
  /** The most rows of each table, at least 1. Default 1 000. */
  readonly limit?: number | undefined;
}

const pruneSchema: Schema<PruneOptions> = {
  ...dialectSchema,
  olderThan: (name, value) =>
    tellOfSeconds(name, checkNumber(`${name} (ms)`, value, 0, Number.MAX_SAFE_INTEGER)),
  limit: integer(1, 2 ** 31 - 1),
};

/**
 * Deletes rows that are older than `olderThan`, at most `limit` of each table. It needs no transaction.
 *
 * @param execute runs a statement. Its result is not used
 * @throws TypeError | RangeError an argument is wrong
 *
 * @example
 * // once a day
 * await pruneInbox((sql, params) => pool.query(sql, params), { olderThan: 30 * 86_400_000 });
 *
 * @example
 * // in D1
 * const execute: Execute = (sql, params) => env.DB.prepare(sql).bind(...params).run();
 * await pruneInbox(execute, { olderThan: 30 * 86_400_000, dialect: "sqlite" });
 */
export async function pruneInbox(execute: Execute, options: PruneOptions): Promise<void> {
  const hints = { usual: "olderThan", required: ["olderThan"] };
  const checked = checkOptions("pruneInbox", options, pruneSchema, hints);
  const { olderThan, limit = 1_000, dialect = "postgres" } = checked;
  checkType("execute", execute, "function");
  for (const table of tables) {
    await runStep(execute, dialects[dialect].prune(table, olderThan, limit), dialects[dialect]);
  }
}
