import { checkType, wrongType } from "../check/check.ts";
import { sharedByCopies } from "../runtime/copies.ts";
import { postgres } from "./dialects.ts";
import { enter } from "./enter.ts";
import { type InboxEntry, type InboxOutcome, type InboxRow, rowOf, TransactionEndedError } from "./entry.ts";

/** One connection, as `pg` and clients with this interface have it. */
export interface SqlClient {
  /** Runs one statement. `$1` and so on stand for the values. */
  query(
    sql: string,
    values?: unknown[],
  ): Promise<{ readonly rows: readonly unknown[]; readonly command?: string | null | undefined }>;
  /** Gives the connection back to its pool. With true it is closed instead. */
  release?(destroy?: boolean): void;
  /** Adds a listener to an emitter of Node. */
  on?(event: "error", listener: (error: Error) => void): unknown;
  /** Removes it. */
  off?(event: "error", listener: (error: Error) => void): unknown;
}

/**
 * Where the connection for a transaction comes from: a pool, or `{ connect: async () => client }` for a client that nothing
 * else uses meanwhile. A pool's own `query` is not used: each call of it may get another connection.
 */
export interface SqlPool<Client extends SqlClient = SqlClient> {
  /** A connection that nothing else uses until it is released. */
  connect(): Promise<Client>;
}

// Nothing is found in another transaction, and if none is open, in the transaction of this statement. It fails where a
// statement of the effect has failed.
const findOwn = "SELECT 1 FROM redlock_inbox WHERE key = $1 AND txid_current()::text = $2";

const findStatus = "SELECT txid_status($1::bigint) AS status";

/** Thrown where the effect has left another transaction behind, or none. */
const notOurs = new Error("the effect has ended the transaction");

/**
 * Connections in a transaction of this package, in any of its copies: a second one on this connection would be part of the
 * first.
 */
const connectionsInUse = () => sharedByCopies("inbox.in-use", () => new WeakSet<SqlClient>());

/**
 * Commits an effect in Postgres together with its delivery's key, in one transaction: both or neither, and once per key.
 * The table decides. You need neither a lock nor an answer of Redis for that.
 *
 * Of two concurrent calls the second waits for the end of the first one's transaction. When the answer to COMMIT is lost,
 * the call fails, and whether it has committed is unknown: the next attempt finds the key, or has the effect. A
 * serialization failure or a deadlock (`code` 40001 or 40P01) is thrown, not retried: nothing was written, and calling
 * again is safe.
 *
 * @param effect writes through the client that it gets, and only through that client. It must await everything, and leave
 * BEGIN, COMMIT and ROLLBACK alone. Its work elsewhere, such as a request to a service, is not undone
 * @throws {StaleFenceError} a newer holder has written to the entity
 * @throws {TransactionEndedError} the effect has ended the transaction itself. `committed` tells you the fate of the key
 * @throws the error of `effect` or of the client. The transaction is then rolled back
 * @throws TypeError | RangeError when the entry is wrong, or the connection is in use
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
  // `pg` also emits the error of a connection that breaks, and an event without a listener would end the process. The
  // query that fails reports it.
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
    // A connection in an unknown state must not be used for anything else.
    client.release?.(!isClean);
    client.off?.("error", ignore);
  }
}

/** What an effect runs in. */
interface Running {
  /** The number of the transaction, from the beginning of the effect until COMMIT is sent. */
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
  // COMMIT also succeeds where a statement that nobody waited for has ended the transaction just before it.
  if ((await statusOf(client, transaction)) === "committed") return { first: true, result };
  running.transaction = transaction;
  throw notOurs;
}

async function commit(client: SqlClient): Promise<void> {
  // It is answered with ROLLBACK, and without an error, where a statement that nobody waited for has failed meanwhile.
  const { command } = await client.query("COMMIT");
  if (command === "ROLLBACK") throw statementFailed();
}

function statementFailed(cause?: unknown): Error {
  return new Error("a statement of the effect failed: Postgres has rolled it back", { cause });
}

/** The only value of a row, which some clients return as an array. */
function onlyValue(row: unknown): unknown {
  return Object.values(Object(row))[0];
}

async function statusOf(client: SqlClient, transaction: unknown): Promise<unknown> {
  return onlyValue((await client.query(findStatus, [transaction])).rows[0]);
}

/** Whether the transaction was committed. Undefined if nobody knows, or no effect has begun in it. */
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
