import { wrongType } from "../check/check.ts";
import { missingTables, noTable, raiseOrFail, sqlite } from "./dialects.ts";
import {
  type InboxEntry,
  type InboxOutcome,
  type InboxRow,
  type Mark,
  rowOf,
  StaleFenceError,
} from "./entry.ts";

/** A prepared statement of D1 with its values. */
export interface D1Statement {
  /** The first row. */
  first(): Promise<unknown>;
}

/** The used part of a `D1Database`. Pass no session of it, which may read old rows. */
export interface D1<Statement extends D1Statement, Result> {
  /** A statement without its values. */
  prepare(sql: string): {
    /** The statement with its values. */
    bind(...values: unknown[]): Statement;
  };
  /** In one transaction. */
  batch(statements: Statement[]): Promise<Result[]>;
}

const insertKey = "INSERT INTO redlock_inbox (key) VALUES (?)";

const isHigher = ({ kind }: Mark) =>
  `EXISTS (SELECT 1 FROM redlock_${kind}s WHERE entity = ? AND ${kind} > CAST(? AS INTEGER)) AS ${kind}`;

// D1 takes no bigint.
const valuesOf = ({ entity, number }: Mark) => [entity, `${number}`];

/**
 * Commits an effect in D1 together with its delivery's key, in one batch: both or neither, and once per key. If D1's
 * answer is lost but the batch was committed, you get `first: false`, as the next attempt does.
 *
 * @param effect statements that run in this order. `result` has one result for each
 * @throws {StaleFenceError} a newer holder has written to the entity
 * @throws D1's error. If a statement failed, nothing is written. If D1 cannot be reached, the next attempt finds out
 * @throws TypeError | RangeError the entry is wrong
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
  return enter(db, row, effect);
}

async function enter<Statement extends D1Statement, Result>(
  db: D1<Statement, Result>,
  row: InboxRow,
  effect: readonly Statement[],
): Promise<InboxOutcome<Result[]>> {
  const { key, marks } = row;
  const own = [
    db.prepare(insertKey).bind(key),
    ...marks.map((mark) => db.prepare(raiseOrFail(mark.kind)).bind(...valuesOf(mark))),
  ];
  try {
    const results = await db.batch([...own, ...effect]);
    return { first: true, result: results.slice(own.length) };
  } catch (error) {
    // The tables tell what failed, because an error's text may come from the effect's statements.
    const found = await find(db, row).catch((cause: unknown) => {
      if (noTable.test(String(cause))) throw missingTables(sqlite, cause);
    });
    if (found?.repeated) return { first: false };
    const stale = marks.find(({ kind }) => found?.[kind]);
    if (!stale) throw error;
    if (stale.kind === "fence") throw new StaleFenceError(stale.entity, stale.number);
    const { first } = await enter(db, { key, marks: marks.filter((mark) => mark !== stale) }, []);
    return first ? { first: false, stale: true } : { first };
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

async function find<Statement extends D1Statement, Result>(
  db: D1<Statement, Result>,
  { key, marks }: InboxRow,
): Promise<Partial<Record<"repeated" | Mark["kind"], number>>> {
  const isRepeated = "EXISTS (SELECT 1 FROM redlock_inbox WHERE key = ?) AS repeated";
  const statement = db.prepare(`SELECT ${[isRepeated, ...marks.map(isHigher)].join(", ")}`);
  return (await statement.bind(key, ...marks.flatMap(valuesOf)).first()) as Record<string, number>;
}
