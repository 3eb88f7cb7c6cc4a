import type { Context, MiddlewareHandler } from "hono";
import { pruneInbox } from "../../src/inbox/index.ts";
import { effectKey } from "../effect.ts";
import type { Sender } from "../senders.ts";
import type { WorkerEnv } from "../webhook.ts";

/** What came of a delivery: see schema.sql. */
export type Outcome = "executed" | "replayed" | "refused" | "retry";

/** A row for the journal. */
export interface JournalEntry {
  /** When the request arrived, ms since 1970. */
  readonly at: number;
  readonly sender: string;
  /** What tells the delivery from all others; like event and entity null where it was refused. */
  readonly delivery_key: string | null;
  readonly event: string | null;
  readonly entity: string | null;
  readonly outcome: Outcome;
  readonly status: number;
  /** Why it was refused or has to be sent again: a sentence for people. */
  readonly reason: string | null;
}

/** An event with all its deliveries, or the refused deliveries of a sender: what came of the last one, and how often. */
export interface EventRow extends JournalEntry {
  readonly id: number;
  readonly delivered: number;
  /** How many effects the event has had. */
  readonly handled: number;
}

/** The number of newest deliveries that the journal keeps. */
const maxDeliveries = 10_000;

/** How long effects, and their keys in the inbox, are kept, in ms: longer than any sender retries. */
const effectRetention = 30 * 24 * 60 * 60 * 1_000;

// Anyone can send deliveries that are refused. If all were written, a flood of them would cost money per row and push
// the genuine deliveries out. A sample is enough to notice it.
const maxRefusedPerMinute = 60;
/** The refused deliveries of the current minute, in this isolate. */
const refused = { minute: 0, count: 0 };

/**
 * Middleware that writes what came of each delivery of a sender, after the answer: the sender need not wait for it, and a
 * failure of the journal is not one of the event.
 *
 * @example
 * app.post("/webhooks/github", journal(github), ...receive(github));
 */
export function journal(sender: Sender): MiddlewareHandler<WorkerEnv> {
  return async function journal(c, next) {
    const at = Date.now();
    await next();
    // The body of the answer can be copied until it is sent.
    const problem = c.res.ok ? undefined : c.res.clone();
    c.executionCtx.waitUntil(write(c, { at, sender: sender.name }, problem).catch(console.error));
  };
}

async function write(
  c: Context<WorkerEnv>,
  { at, sender }: Pick<JournalEntry, "at" | "sender">,
  problem: Response | undefined,
): Promise<void> {
  const { webhook, event } = c.var;
  const { title = null } = problem ? await problem.json<{ title?: string }>() : {};
  await writeJournal(c.env.DB, {
    at,
    sender,
    delivery_key: event ? effectKey(webhook) : null,
    event: event?.name ?? null,
    entity: event?.entity ?? null,
    outcome: outcomeOf(c),
    status: c.res.status,
    reason: title,
  });
}

function outcomeOf({ res, var: { written } }: Context<WorkerEnv>): Outcome {
  if (res.ok) {
    return res.headers.has("idempotent-replayed") || written?.first === false ? "replayed" : "executed";
  }
  return res.status < 500 || res.status === 501 ? "refused" : "retry";
}

/**
 * Writes an entry, and deletes the oldest deliveries, effects and rows of the inbox. Of refused deliveries each isolate
 * writes at most 60 a minute. Reads and deletes a bounded number of rows, independent of the tables' size.
 *
 * @throws {Error} of D1
 *
 * @example
 * context.executionCtx.waitUntil(writeJournal(env.DB, entry));
 */
export async function writeJournal(db: D1Database, entry: JournalEntry): Promise<void> {
  if (entry.outcome === "refused" && !isSampled(entry.at)) return;
  const { at, sender, delivery_key, event, entity, outcome, status, reason } = entry;
  await db.batch([
    db
      .prepare(`INSERT INTO deliveries (at, sender, delivery_key, event, entity, outcome, status, reason)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)`)
      .bind(at, sender, delivery_key, event, entity, outcome, status, reason),
    // By the primary key: this reads no more rows than it deletes.
    db
      .prepare("DELETE FROM deliveries WHERE id <= (SELECT max(id) FROM deliveries) - ?1")
      .bind(maxDeliveries),
    // Ten at a time, to catch up after failures. Rows are inserted in the order of time: the first ones are the oldest,
    // and no index of times is needed.
    db
      .prepare(`DELETE FROM effects WHERE rowid IN (
        SELECT number FROM (SELECT rowid AS number, at FROM effects ORDER BY rowid LIMIT 10) WHERE at < ?1)`)
      .bind(at - effectRetention),
  ]);
  const execute = (sql: string, values: string[]) =>
    db
      .prepare(sql)
      .bind(...values)
      .run();
  await pruneInbox(execute, { dialect: "sqlite", olderThan: effectRetention, limit: 10 });
}

function isSampled(at: number): boolean {
  const minute = Math.floor(at / 60_000);
  if (minute !== refused.minute) Object.assign(refused, { minute, count: 0 });
  refused.count += 1;
  return refused.count <= maxRefusedPerMinute;
}

/**
 * Reads the events of the 100 newest deliveries, the one that was delivered last first, with one search of an index for each.
 *
 * @throws {Error} of D1
 *
 * @example
 * const [newest] = await readEvents(env.DB);
 */
export async function readEvents(db: D1Database): Promise<readonly EventRow[]> {
  // SQLite takes the other columns from the row with the largest id.
  const { results } = await db
    .prepare(`SELECT *, (SELECT count(*) FROM effects WHERE effects.delivery_key = events.delivery_key) AS handled
      FROM (SELECT *, max(id), count(*) AS delivered
        FROM (SELECT * FROM deliveries ORDER BY id DESC LIMIT 100)
        GROUP BY delivery_key, CASE WHEN delivery_key IS NULL THEN sender || status END) AS events
      ORDER BY id DESC LIMIT 50`)
    .all<EventRow>();
  return results;
}
