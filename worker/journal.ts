import { type DeliveryRow, type EntityRow, outcomes, type PageData } from "./page.ts";

/** A row for the journal. */
export type JournalEntry = Omit<DeliveryRow, "id">;

/** How many of the newest deliveries the journal keeps. */
const kept = 10_000;

/** How long effects are kept, in ms: longer than any sender sends an event again. */
const effectsKept = 30 * 24 * 60 * 60 * 1_000;

// Anybody can send what will be refused. Were all of it written, a flood of it would be paid for by the row
// and would push the genuine deliveries out; a sample shows that it happens.
const refusedPerMinute = 60;
let minute = 0;
let refused = 0;

/**
 * Writes down what became of a delivery, and forgets the oldest deliveries and effects. Of refused deliveries only
 * 60 a minute are written (by each isolate). It reads and deletes a bounded number of rows, however many there are.
 *
 * @throws {Error} of D1
 *
 * @example
 * context.executionCtx.waitUntil(writeJournal(env.DB, entry));
 */
export async function writeJournal(db: D1Database, entry: JournalEntry): Promise<void> {
  if (entry.outcome === "refused" && !sampled(entry.at)) return;
  const { at, provider, delivery, event, entity, outcome, status, fence, requests, commands, ms } = entry;
  await db.batch([
    db
      .prepare(`INSERT INTO deliveries
        (at, provider, delivery, event, entity, outcome, status, fence, requests, commands, ms)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)`)
      .bind(at, provider, delivery, event, entity, outcome, status, fence, requests, commands, ms),
    // By the primary key, so that it reads no more rows than it deletes.
    db.prepare("DELETE FROM deliveries WHERE id <= (SELECT max(id) FROM deliveries) - ?1").bind(kept),
    // More than one, so that it catches up where it was not run for a while. Rows are inserted in the order of time,
    // so the first ones are the oldest, and no index of times is needed.
    db
      .prepare(`DELETE FROM effects WHERE rowid IN (
        SELECT number FROM (SELECT rowid AS number, at FROM effects ORDER BY rowid LIMIT 10) WHERE at < ?1)`)
      .bind(at - effectsKept),
  ]);
}

function sampled(at: number): boolean {
  const now = Math.floor(at / 60_000);
  if (now !== minute) {
    minute = now;
    refused = 0;
  }
  refused += 1;
  return refused <= refusedPerMinute;
}

/**
 * The newest deliveries, the newest first.
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
 * What the page shows, read in one go: a bounded number of rows, however many there are.
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
