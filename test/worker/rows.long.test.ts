import { readFile } from "node:fs/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { unstable_splitSqlQuery as splitSqlQuery } from "wrangler";
import { createTables, startWorker } from "../../tools/local-worker.mjs";

// Imported by a variable, so that the compiler does not follow: they need workerd's types, which conflict with Node's.
const [effectFile, journalFile] = ["../../worker/effect.ts", "../../worker/journal.ts"];
const { writeEffect } = await import(effectFile);
const { readDeliveries, readNewestId, readPageData, writeJournal } = await import(journalFile);

let worker: Awaited<ReturnType<typeof startWorker>>;
let read: number[];
/** The Worker's database. It records how many rows each query reads, as D1 bills them. */
let db: D1Database;

beforeEach(async () => {
  worker = await startWorker({ bindings: {} });
  read = [];
  db = counting(worker.database);
});
afterEach(() => worker.close());

interface D1Database {
  prepare(statement: string): Statement;
  batch(statements: readonly Statement[]): Promise<readonly Result[]>;
}
interface Statement {
  bind(...values: readonly (string | number)[]): Statement;
  all(): Promise<Result>;
  first(): Promise<Result["results"][number] | null>;
}
interface Result {
  readonly results: readonly Readonly<Record<string, string | number>>[];
  readonly meta: { readonly rows_read: number };
}

function counting(database: D1Database): D1Database {
  const noted = (result: Result) => {
    expect(result.meta.rows_read).toEqual(expect.any(Number));
    read.push(result.meta.rows_read);
    return result;
  };
  const made = new WeakMap<Statement, Statement>();
  const wrap = (statement: Statement): Statement => {
    const wrapped = {
      bind: (...values: readonly (string | number)[]) => wrap(statement.bind(...values)),
      all: async () => noted(await statement.all()),
      first: async () => noted(await statement.all()).results[0] ?? null,
    };
    made.set(wrapped, statement);
    return wrapped;
  };
  return {
    prepare: (statement) => wrap(database.prepare(statement)),
    batch: async (statements) => (await database.batch(statements.map((each) => made.get(each)!))).map(noted),
  };
}

const numbers = (count: number) =>
  `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count})`;

/** Inserts the rows of many deliveries, all with the time `at`. */
async function fill(count: number, at: number): Promise<void> {
  const from = (columns: string) => `${numbers(count)} SELECT ${columns} FROM n`;
  for (const statement of [
    `INSERT INTO effects ${from(`'key ' || i, 'entity ' || i, 'paid', i, ${at}`)}`,
    `INSERT INTO entities ${from(`'entity ' || i, 1, 'paid', 'key ' || i, ${at}, i`)}`,
    `INSERT INTO redlock_inbox ${from(`'["x","' || i || '"]', ${at}`)}`,
    `INSERT INTO redlock_fences ${from(`'entity ' || i, i, ${at}`)}`,
    `INSERT INTO deliveries (at, provider, outcome, status, ms) ${from(`${at}, 'x', 'executed', 200, 1`)}`,
  ]) {
    await worker.database.prepare(statement).run();
  }
}

const entry = (at: number) => ({
  at,
  provider: "x",
  delivery: "d",
  event: "paid",
  entity: "entity",
  outcome: "executed",
  status: 200,
  fence: 1,
  requests: 0,
  commands: 0,
  ms: 1,
  reason: null as string | null,
  votes: null,
});
const effect = (id: string, fence: number, at = Date.now()) =>
  writeEffect(db, { delivery: { provider: "x", scope: [], id }, entity: "shared", event: "paid", fence, at });
/** An effect that happens again in spite of the inbox. */
const again = (key: string) =>
  db.prepare("INSERT INTO effects VALUES (?1, 'shared', 'paid', 9, ?2)").bind(key, Date.now()).all();
const page = () => readPageData(db);
const count = async (table: string) =>
  (await worker.database.prepare(`SELECT count(*) AS count FROM ${table}`).all()).results[0].count;

describe("with 20 000 rows in every table", () => {
  beforeEach(() => fill(20_000, Date.now()));

  it("the page reads few of them and shows the total", async () => {
    const { counts, effects, deliveries, entities } = await page();
    expect(counts).toMatchObject({ executed: 20_000, busy: 0 });
    expect(effects).toEqual({ performed: 20_000, repeated: 0 });
    expect([deliveries.length, entities.length]).toEqual([50, 20]);
    expect(read).toHaveLength(4);
    expect(Math.max(...read)).toBeLessThanOrEqual(250);
    read = [];
    expect(await readNewestId(db)).toBe(20_000);
    expect(read).toEqual([1]);
  });

  it("the page finds the first of each delivery, and reads no table as a whole", async () => {
    await worker.database.prepare("UPDATE deliveries SET provider = 'x', delivery = 'd' || (id % 40)").run();
    const { deliveries, firsts } = await page();
    expect(deliveries).toHaveLength(50);
    expect(firsts.map(({ id }: { id: number }) => id).sort((a: number, b: number) => a - b)).toEqual(
      Array.from({ length: 40 }, (_, index) => index + 1),
    );
    expect(Math.max(...read)).toBeLessThanOrEqual(250);
  });

  it("the list of deliveries, a delivery and its journal entry read few of them, too", async () => {
    await readDeliveries(db, 50);
    await effect("new", 1);
    await effect("newer", 2);
    await effect("new", 3);
    await expect(effect("newest", 1)).rejects.toThrow(/fence/);
    await again("key 7");
    expect(Math.max(...read)).toBeLessThanOrEqual(100);
    // The first entry finds 10 000 rows too many.
    await worker.database
      .prepare("INSERT INTO delivery_problems (id, reason) SELECT id, 'busy' FROM deliveries")
      .run();
    await writeJournal(db, { ...entry(Date.now()), reason: "No quorum." });
    expect([await count("deliveries"), await count("delivery_problems")]).toEqual([10_000, 10_000]);
    expect(await readDeliveries(db, 1)).toMatchObject([{ id: 20_001, reason: "No quorum.", votes: null }]);
    read = [];
    await writeJournal(db, entry(Date.now()));
    expect(Math.max(...read)).toBeLessThanOrEqual(100);
    expect((await page()).effects).toEqual({ performed: 20_003, repeated: 1 });
  });
});

describe("effects", () => {
  const days = (count: number) => Date.now() - count * 24 * 60 * 60 * 1_000;

  it("that happened twice in spite of the inbox count as repeated once per delivery", async () => {
    await effect("a", 1);
    for (const _ of [1, 2, 3]) await again("x:a");
    expect((await page()).effects).toEqual({ performed: 4, repeated: 1 });
  });

  it("older than 30 days are deleted, some with each delivery, and still counted", async () => {
    await fill(25, days(31));
    await effect("recent", 1, days(29));
    for (const remaining of [16, 6, 1, 1]) {
      await writeJournal(db, entry(Date.now()));
      expect(await count("effects")).toBe(remaining);
      expect(await count("redlock_inbox")).toBe(remaining);
      expect(await count("redlock_fences")).toBe(remaining);
    }
    expect((await page()).effects).toEqual({ performed: 26, repeated: 0 });
  });
});

describe("schema.sql", () => {
  it("counts the rows of a database without counters, and can be applied again", async () => {
    for (const statement of ["DROP TRIGGER effects_counted", "DROP TRIGGER deliveries_counted"]) {
      await worker.database.prepare(statement).run();
    }
    await worker.database.prepare("DROP TABLE counters").run();
    await fill(3, 1);
    await worker.database.prepare("INSERT INTO effects SELECT * FROM effects WHERE fence = 2").run();
    for (const _ of ["first", "again"]) {
      await createTables(worker.database);
      const { counts, effects } = await page();
      expect(counts).toMatchObject({ executed: 3, replayed: 0 });
      expect(effects).toEqual({ performed: 4, repeated: 1 });
    }
    await effect("new", 1);
    expect((await page()).effects).toEqual({ performed: 5, repeated: 1 });
  });

  it("is split into the same statements by wrangler", async () => {
    const schema = await readFile("worker/schema.sql", "utf8");
    const statements = splitSqlQuery(schema);
    expect(statements.filter((statement) => /CREATE TRIGGER[^;]*BEGIN/.test(statement))).toHaveLength(2);
    for (const statement of statements) await worker.database.prepare(statement).run();
    await effect("new", 1);
    expect((await page()).effects).toEqual({ performed: 1, repeated: 0 });
  });
});
