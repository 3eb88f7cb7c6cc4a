import { wrongType } from "../check/check.ts";
import { type Dialect, missingTables, noTable, type Step } from "./dialects.ts";
import { type InboxOutcome, type InboxRow, StaleFenceError } from "./entry.ts";

/**
 * Runs one statement in the open transaction, and resolves with its rows: an array, `{ rows }`, or mysql2's `[rows,
 * fields]`. Each value stands in the statement once, in order.
 */
export type Execute = (sql: string, params: string[]) => unknown;

export async function requireTransaction(execute: Execute, dialect: Dialect): Promise<void> {
  try {
    for (const step of dialect.requireTransaction) await runStep(execute, step, dialect);
  } catch (error) {
    // MySQL prepares no savepoint, and some clients prepare every statement.
    if (databaseError(error).code !== "1295") throw error;
  }
}

/**
 * A duplicate writes nothing, and a stale version only key and fence.
 *
 * @throws {StaleFenceError} nothing is written, even if the transaction is committed
 */
export async function enter(
  execute: Execute,
  { key, marks }: InboxRow,
  dialect: Dialect,
): Promise<InboxOutcome<unknown>> {
  const lastRow = async (steps: readonly Step[]) => {
    let result: unknown;
    for (const step of steps) result = await runStep(execute, step, dialect);
    return firstRow(result);
  };
  const row = await lastRow(dialect.insertKey(key));
  if (row === undefined) return { first: false };
  for (const mark of marks) {
    if ((await lastRow(dialect.raise(mark))) !== undefined) continue;
    if (mark.kind === "version") return { first: false, stale: true };
    // The caller may catch the error and commit.
    await runStep(execute, dialect.deleteKey(key), dialect);
    throw new StaleFenceError(mark.entity, mark.number);
  }
  return { first: true, result: row };
}

export async function runStep(execute: Execute, [sql, params]: Step, dialect: Dialect): Promise<unknown> {
  try {
    return await execute(sql, [...params]);
  } catch (cause) {
    const { code, message } = databaseError(cause);
    if (code === "42P01" || code === "1146" || noTable.test(message)) throw missingTables(dialect, cause);
    if (code === "25P01" || code === "1305") {
      const what = "execute must run its statements in an open transaction: use the transaction's own method";
      throw new Error(`${what}, not that of the client or pool`, { cause });
    }
    if (code === "42601" || code === "1064" || /: syntax error$/.test(message)) {
      const what = "the database does not know the statement: is the option dialect the right one?";
      throw new Error(`${what} It is for ${dialect.schema}`, { cause });
    }
    throw cause;
  }
}

/** Some libraries wrap the driver's error. */
function databaseError(error: unknown): { readonly code: string; readonly message: string } {
  let inner = Object(error);
  for (let depth = 0; depth < 5 && inner.cause instanceof Error; depth += 1) inner = inner.cause;
  const message = String(inner.message);
  // Prisma writes the code into its text. MySQL has a number and a name.
  const code = inner.code === "P2010" ? /Code: `(\w+)`/.exec(message)?.[1] : (inner.errno ?? inner.code);
  return { code: String(code), message };
}

function firstRow(result: unknown): unknown {
  // mysql2's first element is the rows. A client that returns rows as arrays never returns an empty one.
  if (Array.isArray(result)) return Array.isArray(result[0]) ? result[0][0] : result[0];
  const { rows } = Object(result);
  if (Array.isArray(rows)) return rows[0];
  throw wrongType("what execute resolves with", result, "rows: an array, { rows } or [rows, fields]");
}
