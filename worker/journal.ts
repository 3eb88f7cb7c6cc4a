import { pruneD1 } from "../src/inbox/index.ts";
import type { JournalData } from "./page/page.ts";
import { type DeliveryRow, type EntityRow, outcomes } from "./rows.ts";

/** A row for the journal. */
export type JournalEntry = Omit<DeliveryRow, "id">;

/** The number of newest deliveries that the journal keeps. */
const maxDeliveries = 10_000;

/** The numbers of rows that the page shows. */
const shownDeliveries = 50;
const shownEntities = 20;

/** How long effects, and their keys in the inbox, are kept, in ms: longer than any sender retries. */
const effectRetention = 30 * 24 * 60 * 60 * 1_000;

// Anyone can send deliveries that are refused. If all were written, a flood of them would cost money per row and push
// the genuine deliveries out. A sample is enough to notice it.
const maxRefusedPerMinute = 60;
/** The refused deliveries of the current minute, in this isolate. */
const refused = { minute: 0, count: 0 };

/**
 * Writes the outcome of a delivery, and deletes the oldest deliveries, effects and rows of the inbox. Of refused
 * deliveries each isolate writes at most 60 a minute. Reads and deletes a bounded number of rows, independent of the tables' size.
 *
 * @throws {Error} of D1
 *
 * @example
 * context.executionCtx.waitUntil(writeJournal(env.DB, entry));
 */
export async function writeJournal(db: D1Database, entry: JournalEntry): Promise<void> {
  if (entry.outcome === "refused" && !isSampled(entry.at)) return;
  const { at, provider, delivery, event, entity, outcome, status, fence, requests, commands, ms } = entry;
  const { reason, votes } = entry;
  await db.batch([
    db
      .prepare(`INSERT INTO deliveries
        (at, provider, delivery, event, entity, outcome, status, fence, requests, commands, ms)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)`)
      .bind(at, provider, delivery, event, entity, outcome, status, fence, requests, commands, ms),
    // In the same transaction, the newest row is the one above.
    ...(reason === null
      ? []
      : [
          db
            .prepare(
              "INSERT INTO delivery_problems (id, reason, votes) SELECT max(id), ?1, ?2 FROM deliveries",
            )
            .bind(reason, votes && JSON.stringify(votes)),
        ]),
    // By the primary key: this reads no more rows than it deletes.
    db
      .prepare("DELETE FROM deliveries WHERE id <= (SELECT max(id) FROM deliveries) - ?1")
      .bind(maxDeliveries),
    db
      .prepare("DELETE FROM delivery_problems WHERE id <= (SELECT max(id) FROM deliveries) - ?1")
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
  const { results } = await newestDeliveries(db, limit).all<StoredRow>();
  return results.map(rowOf);
}

/**
 * Reads the number of the newest delivery: one row. It grows with every delivery; 0 before the first one.
 *
 * @throws {Error} of D1
 *
 * @example
 * const changed = (await readNewestId(env.DB)) > seen;
 */
export async function readNewestId(db: D1Database): Promise<number> {
  const row = await db.prepare("SELECT max(id) AS id FROM deliveries").first<{ id: number | null }>();
  return row?.id ?? 0;
}

/**
 * Reads what the page shows in one batch: a bounded number of rows, independent of the tables' size.
 *
 * @throws {Error} of D1
 *
 * @example
 * const html = page({ ...(await readPageData(env.DB)), urls, health, version });
 */
export async function readPageData(db: D1Database): Promise<JournalData> {
  const [counters, deliveries, firsts, entities] = await db.batch([
    db.prepare("SELECT name, value FROM counters"),
    newestDeliveries(db, shownDeliveries),
    firstDeliveries(db, shownDeliveries),
    db.prepare("SELECT * FROM entities ORDER BY updated_at DESC LIMIT ?1").bind(shownEntities),
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
    deliveries: ((deliveries?.results ?? []) as StoredRow[]).map(rowOf),
    firsts: ((firsts?.results ?? []) as StoredRow[]).map(rowOf),
    entities: (entities?.results ?? []) as EntityRow[],
  };
}

/** A row as the database returns it: votes are JSON. */
type StoredRow = Omit<DeliveryRow, "votes"> & { readonly votes: string | null };

function rowOf({ votes, ...row }: StoredRow): DeliveryRow {
  return { ...row, votes: votes === null ? null : JSON.parse(votes) };
}

const selectDeliveries =
  "SELECT deliveries.*, reason, votes FROM deliveries LEFT JOIN delivery_problems USING (id)";

function newestDeliveries(db: D1Database, limit: number): D1PreparedStatement {
  return db.prepare(`${selectDeliveries} ORDER BY deliveries.id DESC LIMIT ?1`).bind(limit);
}

/** The first row of each delivery that is among the newest rows: one search of the index for each. */
function firstDeliveries(db: D1Database, limit: number): D1PreparedStatement {
  return db
    .prepare(`${selectDeliveries} WHERE deliveries.id IN (
      SELECT (SELECT id FROM deliveries AS copies
        WHERE copies.provider = newest.provider AND copies.delivery = newest.delivery ORDER BY id LIMIT 1)
      FROM (SELECT provider, delivery FROM deliveries ORDER BY id DESC LIMIT ?1) AS newest)`)
    .bind(limit);
}
