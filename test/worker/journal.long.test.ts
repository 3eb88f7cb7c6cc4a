import { afterEach, beforeEach, expect, it } from "vitest";
import { startWorker } from "../../tools/local-worker.mjs";

// Imported by variables, so that the compiler does not follow: they need workerd's types, which conflict with Node's.
const [effectFile, journalFile] = ["../../worker/effect.ts", "../../worker/page/journal.ts"];
const { writeEffect } = await import(effectFile);
const { readEvents, writeJournal } = await import(journalFile);

interface Statement {
  bind(...values: readonly (string | number)[]): Statement;
  all(): Promise<Result>;
}
interface Result {
  readonly results: readonly Readonly<Record<string, string | number>>[];
  readonly meta: { readonly rows_read: number };
}

let worker: Awaited<ReturnType<typeof startWorker>>;
/** How many rows each statement has read, as D1 bills them. */
let read: number[];
beforeEach(async () => {
  worker = await startWorker({ bindings: {} });
  read = [];
});
afterEach(() => worker.close());

/** The Worker's database, which notes what is read. */
const db = {
  prepare: (sql: string) => counting(worker.database.prepare(sql)),
  async batch(statements: readonly ReturnType<typeof counting>[]) {
    const results: Result[] = await worker.database.batch(statements.map(({ statement }) => statement));
    return results.map(note);
  },
};
function counting(statement: Statement) {
  return {
    statement,
    bind: (...values: readonly (string | number)[]) => counting(statement.bind(...values)),
    all: async () => note(await statement.all()),
    run: async () => note(await statement.all()),
    first: async () => note(await statement.all()).results[0] ?? null,
  };
}
function note(result: Result): Result {
  expect(result.meta.rows_read).toEqual(expect.any(Number));
  read.push(result.meta.rows_read);
  return result;
}

/** Inserts the rows of many deliveries, all with the time `at`. */
async function fill(count: number, at: number): Promise<void> {
  const numbers = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count})`;
  const rows = {
    effects: `'x:' || i, 'paid', 'entity ' || i, i, 1, ${at}`,
    entities: "'entity ' || i, 1, i",
    redlock_inbox: `'["x","' || i || '"]', ${at}`,
    redlock_fences: `'entity ' || i, i, ${at}`,
    deliveries: `i, ${at}, 'x', 'x:' || i, 'paid', 'entity ' || i, 'executed', 200, NULL`,
  };
  for (const [table, columns] of Object.entries(rows)) {
    await worker.database.prepare(`INSERT INTO ${table} ${numbers} SELECT ${columns} FROM n`).run();
  }
}

const entry = () => ({
  at: Date.now(),
  sender: "x",
  delivery_key: "x:d",
  event: "paid",
  entity: "entity",
  outcome: "executed",
  status: 200,
  reason: null,
});
const effect = (id: string, fence: number) =>
  writeEffect(db, { provider: "x", scope: [], id }, { name: "paid", entity: "shared" }, fence);
const count = async (table: string) =>
  (await worker.database.prepare(`SELECT count(*) AS count FROM ${table}`).all()).results[0].count;

it("with 20 000 rows in every table, each operation reads few of them", async () => {
  await fill(20_000, Date.now());
  expect(await readEvents(db)).toHaveLength(50);
  expect(Math.max(...read)).toBeLessThanOrEqual(500);
  read = [];
  await effect("new", 1);
  await effect("newer", 2);
  await effect("new", 3);
  await expect(effect("newest", 1)).rejects.toThrow(/fence/);
  expect(Math.max(...read)).toBeLessThanOrEqual(200);
  // The first entry finds 10 000 rows too many.
  await writeJournal(db, entry());
  expect(await count("deliveries")).toBe(10_000);
  read = [];
  await writeJournal(db, entry());
  expect(Math.max(...read)).toBeLessThanOrEqual(100);
  expect(await count("deliveries")).toBe(10_000);
});

it("an effect that happened twice in spite of the inbox is shown", async () => {
  await effect("a", 1);
  await worker.database.prepare("INSERT INTO effects SELECT * FROM effects").run();
  await writeJournal(db, { ...entry(), delivery_key: "x:a" });
  expect(await readEvents(db)).toMatchObject([{ delivery_key: "x:a", handled: 2 }]);
});

it("effects older than 30 days are deleted, some with each delivery", async () => {
  await fill(25, Date.now() - 31 * 24 * 60 * 60 * 1_000);
  await effect("recent", 1);
  for (const remaining of [16, 6, 1, 1]) {
    await writeJournal(db, entry());
    expect(await count("effects")).toBe(remaining);
    expect(await count("redlock_inbox")).toBe(remaining);
    expect(await count("redlock_fences")).toBe(remaining);
  }
});
