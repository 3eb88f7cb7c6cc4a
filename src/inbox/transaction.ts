import { checkOptions, checkType, oneOf, type Schema } from "../check.ts";
import { type Dialect, mysql, postgres, sqlite } from "./dialects.ts";
import { type Execute, enter, prune, requireTransaction } from "./enter.ts";
import { checkPrune, type InboxEntry, type NotFirst, type PruneOptions, rowOf } from "./entry.ts";

/** Which database it is. */
export interface DialectOptions {
  /** `mysql` is also MariaDB, `sqlite` also libSQL. Default `postgres`. */
  readonly dialect?: "postgres" | "mysql" | "sqlite" | undefined;
}

const dialects: Readonly<Record<NonNullable<DialectOptions["dialect"]>, Dialect>> = {
  postgres,
  mysql,
  sqlite,
};

/**
 * Enters a delivery's key in a transaction that is open already: if the transaction commits, the key does, too. Where it
 * returns `first: false`, leave the effect out; the transaction remains usable.
 *
 * Of two transactions with the same key at once, the second waits here for the end of the first. A deadlock or a
 * serialization failure is thrown: roll back, and call the whole transaction again.
 *
 * @param execute runs a statement in the transaction. Outside of one it is refused; but SQLite cannot tell, and
 * would enter the key although the effect fails
 * @throws {StaleFenceError} a newer holder has written to the entity: roll back. The key is not entered, even if the
 * transaction commits
 * @throws what `execute` throws: roll back
 * @throws TypeError | RangeError when an argument is wrong
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
  const dialect = dialectFor("onceInTransaction", options);
  await requireTransaction(execute, dialect);
  const { as } = await enter(execute, row, dialect);
  if (as === "first") return { first: true };
  return as === "stale" ? { first: false, stale: true } : { first: false };
}

/**
 * Deletes rows that are older than `olderThan`: of each table at most `limit`. It needs no transaction.
 *
 * @param execute runs a statement, as for {@link onceInTransaction}
 * @throws TypeError | RangeError when an argument is wrong
 * @throws what `execute` throws
 *
 * @example
 * // once a day
 * await pruneInbox((sql, params) => prisma.$queryRawUnsafe(sql, ...params), { olderThan: 30 * 86_400_000 });
 */
export async function pruneInbox(execute: Execute, options: PruneOptions & DialectOptions): Promise<void> {
  const { dialect, ...rest } = Object(options) as PruneOptions & DialectOptions;
  const checked = checkPrune("pruneInbox", rest);
  checkType("execute", execute, "function");
  await prune(execute, checked, dialectFor("pruneInbox", { dialect }));
}

function dialectFor(caller: string, options: DialectOptions): Dialect {
  const schema: Schema<DialectOptions> = { dialect: oneOf("postgres", "mysql", "sqlite") };
  const { dialect = "postgres" } = checkOptions(caller, options, schema);
  return dialects[dialect];
}
