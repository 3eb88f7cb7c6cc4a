import { checkType, wrongType } from "../check/check.ts";
import { sharedByCopies } from "../runtime/copies.ts";
import { postgres } from "./dialects.ts";
import { enter } from "./enter.ts";
import { type InboxEntry, type InboxOutcome, type InboxRow, rowOf, TransactionEndedError } from "./entry.ts";

/** One connection, as `pg` has it. */
export interface SqlClient {
  /** Runs one statement. `$1` and so on stand for the values. */
  query(
    sql: string,
    values?: unknown[],
  ): Promise<{ readonly rows: readonly unknown[]; readonly command?: string | null | undefined }>;
  /** Gives the connection back, or with true closes it. */
  release?(destroy?: boolean): void;
  /** Adds a listener. */
  on?(event: "error", listener: (error: Error) => void): unknown;
  /** Removes it. */
  off?(event: "error", listener: (error: Error) => void): unknown;
}

/** A pool, or `{ connect: async () => client }` for a client that nothing else uses meanwhile. */
export interface SqlPool<Client extends SqlClient = SqlClient> {
  /** A connection that nothing else uses until it is released. */
  connect(): Promise<Client>;
}

// Finds nothing in another transaction. Fails if a statement of the effect has failed.
const findOwn = "SELECT 1 FROM redlock_inbox WHERE key = $1 AND txid_current()::text = $2";

const findStatus = "SELECT txid_status($1::bigint) AS status";

const notOurs = new Error("the effect has ended the transaction");

/** A second transaction on a connection would be part of the first. */
const connectionsInUse = () => sharedByCopies("inbox.in-use", () => new WeakSet<SqlClient>());

/**
 * Commits an effect in Postgres together with its delivery's key, in one transaction: both or neither, and once per
 * key. If the answer to COMMIT is lost, the call fails, and the next attempt finds the key or has the effect. After a
 * serialization failure or a deadlock (`code` 40001 or 40P01), call again.
 *
 * @param effect writes only through the client that it gets, awaits everything, and leaves BEGIN, COMMIT and ROLLBACK
 * alone. Its work elsewhere is not undone
 * @throws {StaleFenceError} a newer holder has written to the entity
 * @throws {TransactionEndedError} the effect has ended the transaction
 * @throws the error of `effect` or of the client, after a rollback
 * @throws TypeError | RangeError the entry is wrong, or the connection is in use
 *
 * @example
 * const { first } = await onceInPostgres(pool, { key: deliveryKey(c.var.webhook) }, (client) =>
 *   client.query("UPDATE invoices SET paid = true WHERE id = $1", [invoice]),
 * );
 */
export async function onceInPostgres<Client extends SqlClient, Result>(
  pool: SqlPool<Client>,
  entry: InboxEntry,
  effect: (client: Client) => Promise<Result> | Result,
): Promise<InboxOutcome<Result>> {
  const row = rowOf(entry);
  checkType("effect", effect, "function");
  if (typeof pool?.connect !== "function") throw wrongType("pool", pool, "a pool of connections");
  const client = await pool.connect();
  if (typeof client?.query !== "function") throw wrongType("what connect() returns", client, "a connection");
  const inUse = connectionsInUse();
  if (inUse.has(client)) throw new TypeError("the connection is in a transaction: every call needs its own");
  inUse.add(client);
  // `pg` also emits the error of a broken connection, which would end the process if nobody listens.
  const ignore = () => undefined;
  client.on?.("error", ignore);
  const running: Running = {};
  let isClean = false;
  try {
    const outcome = await transact(client, row, effect, running);
    isClean = true;
    return outcome;
  } catch (error) {
    isClean = await rollBack(client);
    const committed = isClean ? await isCommitted(client, running) : undefined;
    if (error === notOurs) throw new TransactionEndedError(committed);
    throw committed ? new TransactionEndedError(committed, { cause: error }) : error;
  } finally {
    inUse.delete(client);
    client.release?.(!isClean);
    client.off?.("error", ignore);
  }
}

interface Running {
  /** From the beginning of the effect until COMMIT is sent. */
  transaction?: unknown;
}

async function transact<Client extends SqlClient, Result>(
  client: Client,
  row: InboxRow,
  effect: (client: Client) => Promise<Result> | Result,
  running: Running,
): Promise<InboxOutcome<Result>> {
  await client.query("BEGIN");
  const entered = await enter((sql, params) => client.query(sql, params), row, postgres);
  if (!entered.first) {
    await (entered.stale ? commit(client) : client.query("ROLLBACK"));
    return entered;
  }
  const transaction = onlyValue(entered.result);
  running.transaction = transaction;
  const result = await effect(client);
  const found = await client.query(findOwn, [row.key, transaction]).catch((cause: unknown) => {
    throw Object(cause).code === "25P02" ? statementFailed(cause) : cause;
  });
  if (found.rows.length === 0) throw notOurs;
  running.transaction = undefined;
  await commit(client);
  // COMMIT also succeeds if a statement that nobody awaited has ended the transaction just before.
  if ((await statusOf(client, transaction)) === "committed") return { first: true, result };
  running.transaction = transaction;
  throw notOurs;
}

async function commit(client: SqlClient): Promise<void> {
  // COMMIT is answered with ROLLBACK, without an error, if a statement that nobody awaited has failed.
  const { command } = await client.query("COMMIT");
  if (command === "ROLLBACK") throw statementFailed();
}

function statementFailed(cause?: unknown): Error {
  return new Error("a statement of the effect failed: Postgres has rolled it back", { cause });
}

function onlyValue(row: unknown): unknown {
  return Object.values(Object(row))[0];
}

async function statusOf(client: SqlClient, transaction: unknown): Promise<unknown> {
  return onlyValue((await client.query(findStatus, [transaction])).rows[0]);
}

async function isCommitted(client: SqlClient, { transaction }: Running): Promise<boolean | undefined> {
  if (transaction === undefined) return undefined;
  try {
    const status = await statusOf(client, transaction);
    return status === "committed" || (status === "aborted" ? false : undefined);
  } catch {
    return undefined;
  }
}

async function rollBack(client: SqlClient): Promise<boolean> {
  try {
    await client.query("ROLLBACK");
    return true;
  } catch {
    return false;
  }
}
