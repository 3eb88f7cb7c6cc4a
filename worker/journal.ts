import { pruneD1 } from "../src/inbox/index.ts";
import { type DeliveryRow, type EntityRow, outcomes, type PageData } from "./page.ts";

/** A row for the journal. */
export type JournalEntry = Omit<DeliveryRow, "id">;

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
 * Writes the outcome of a delivery, and deletes the oldest deliveries, effects and rows of the inbox. Of refused deliveries each isolate
 * writes at most 60 a minute. Reads and deletes a bounded number of rows, independent of the tables' size.
 *
 * @throws {Error} of D1
 *
 * @example
 * context.executionCtx.waitUntil(writeJournal(env.DB, entry));
 */
export async function writeJournal(db: D1Database, entry: JournalEntry): Promise<void> {
  if (entry.outcome === "refused" && !isSampled(entry.at)) return;
  const { at, provider, delivery, event, entity, outcome, status, fence, requests, commands, ms } = entry;
  await db.batch([
    db
      .prepare(`INSERT INTO deliveries
        (at, provider, delivery, event, entity, outcome, status, fence, requests, commands, ms)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)`)
      .bind(at, provider, delivery, event, entity, outcome, status, fence, requests, commands, ms),
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
  await pruneD1(db, { olderThan: effectRetention, limit: 10 });
}

function isSampled(at: number): boolean {
  const minute = Math.floor(at / 60_000);
  if (minute !== refused.minute) Object.assign(refused, { minute, count: 0 });
  refused.count += 1;
  return refused.count <= maxRefusedPerMinute;
}

/**
 * Reads the newest deliveries, newest first.
 *
 * @param limit 1 … 500
 * @throws {Error} of D1
 *
 * @example
 * const [newest] = await readDeliveries(env.DB, 1);
 */
export async function readDeliveries(db: D1Database, limit: number): Promise<readonly DeliveryRow[]> {
  const { results } = await newestDeliveries(db, limit).all<DeliveryRow>();
  return results;
}

/**
 * Reads what the page shows in one batch: a bounded number of rows, independent of the tables' size.
 *
 * @throws {Error} of D1
 *
 * @example
 * const html = page({ urls, ...(await readPageData(env.DB)) });
 */
export async function readPageData(db: D1Database): Promise<Omit<PageData, "urls">> {
  const [counters, deliveries, entities] = await db.batch([
    db.prepare("SELECT name, value FROM counters"),
    newestDeliveries(db, 50),
    db.prepare("SELECT * FROM entities ORDER BY updated_at DESC LIMIT 20"),
  ]);
  const rows = (counters?.results ?? []) as { name: string; value: number }[];
  const counted = new Map(rows.map(({ name, value }) => [name, value]));
  return {
    counts: Object.fromEntries(
      outcomes.map((outcome) => [outcome, counted.get(`deliveries ${outcome}`) ?? 0]),
    ),
    effects: {
      performed: counted.get("effects performed") ?? 0,
      repeated: counted.get("effects repeated") ?? 0,
    },
    deliveries: deliveries?.results as DeliveryRow[],
    entities: entities?.results as EntityRow[],
  };
}

function newestDeliveries(db: D1Database, limit: number): D1PreparedStatement {
  return db.prepare("SELECT * FROM deliveries ORDER BY id DESC LIMIT ?1").bind(limit);
}
