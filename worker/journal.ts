import type { DeliveryRow, EntityRow, Outcome, PageData } from "./page.ts";

/** A row for the journal. */
export type JournalEntry = Omit<DeliveryRow, "id">;

/** How many of the newest deliveries the journal keeps. */
const kept = 10_000;

// Anybody can send what will be refused. Were all of it written, a flood of it would be paid for by the row
// and would push the genuine deliveries out; a sample shows that it happens.
const refusedPerMinute = 60;
let minute = 0;
let refused = 0;

/**
 * Writes down what became of a delivery, and forgets the oldest. Of refused ones only 60 a minute are written
 * (by each isolate).
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
 * What the page shows, read in one go.
 *
 * @throws {Error} of D1
 *
 * @example
 * const html = page({ urls, ...(await readPageData(env.DB)) });
 */
export async function readPageData(db: D1Database): Promise<Omit<PageData, "urls">> {
  const [counts, effects, deliveries, entities] = await db.batch([
    db.prepare("SELECT outcome, count(*) AS count FROM deliveries GROUP BY outcome"),
    db.prepare(`SELECT coalesce(sum(times), 0) AS performed, coalesce(sum(times > 1), 0) AS repeated
      FROM (SELECT count(*) AS times FROM effects GROUP BY delivery_key)`),
    newestDeliveries(db, 50),
    db.prepare("SELECT * FROM entities ORDER BY updated_at DESC LIMIT 20"),
  ]);
  const byOutcome = (counts?.results ?? []) as { outcome: Outcome; count: number }[];
  return {
    counts: Object.fromEntries(byOutcome.map(({ outcome, count }) => [outcome, count])),
    effects: (effects?.results[0] as PageData["effects"] | undefined) ?? { performed: 0, repeated: 0 },
    deliveries: deliveries?.results as DeliveryRow[],
    entities: entities?.results as EntityRow[],
  };
}

function newestDeliveries(db: D1Database, limit: number): D1PreparedStatement {
  return db.prepare("SELECT * FROM deliveries ORDER BY id DESC LIMIT ?1").bind(limit);
}
