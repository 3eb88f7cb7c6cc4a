import type { D1Database, D1PreparedStatement, D1Result } from "@cloudflare/workers-types";
import { Miniflare } from "miniflare";
import { afterAll, beforeAll, beforeEach, describe, expect, expectTypeOf, test } from "vitest";
import {
  d1Schema,
  type Execute,
  type InboxEntry,
  onceInD1,
  type PruneOptions,
  pruneInbox,
} from "../../src/inbox/index.ts";
import { databaseWorker } from "../../tools/local-database.mjs";
import { outcomeOf } from "../support/outcomes.ts";
import { marksContract } from "./marks-contract.ts";

// On D1 in workerd. The effect of these tests is a row in `effects`, which two effects of a delivery would double.

describe("the inbox in D1", () => {
  let worker: Miniflare;
  let db: D1Database;
  beforeAll(async () => {
    const reader = databaseWorker({ compatibilityDate: "2026-04-01", d1Databases: ["DB"] });
    worker = new Miniflare({ workers: [reader.worker], cf: false, telemetry: { enabled: false } });
    db = (await reader.open(worker)) as unknown as D1Database;
    const tables = `CREATE TABLE effects (key TEXT NOT NULL, what TEXT NOT NULL, n INTEGER PRIMARY KEY);
      CREATE TABLE invoices (number TEXT PRIMARY KEY);
      CREATE TABLE inbox (key TEXT PRIMARY KEY);`;
    // The schema may be applied again.
    for (const statement of `${tables}${d1Schema}${d1Schema}`.split(";").filter((text) => text.trim())) {
      await db.prepare(statement).run();
    }
  });
  afterAll(() => worker.dispose());
  beforeEach(async () => {
    const names = ["redlock_inbox", "redlock_fences", "redlock_versions", "effects", "invoices", "inbox"];
    await db.batch(names.map((name) => db.prepare(`DELETE FROM ${name}`)));
  });

  const pay = (key: InboxEntry["key"], what = "paid") =>
    db
      .prepare("INSERT INTO effects (key, what) VALUES (?1, ?2) RETURNING what")
      .bind([key].flat().join(), what);
  const once = (key: InboxEntry["key"], entry?: Omit<InboxEntry, "key">, what = "paid") =>
    onceInD1(db, { key, ...entry }, [pay(key, what)]);
  const prune = (options: Omit<PruneOptions, "dialect">) => {
    const execute: Execute = (sql, params) =>
      db
        .prepare(sql)
        .bind(...params)
        .run();
    return pruneInbox(execute, { ...options, dialect: "sqlite" });
  };
  const rows = async (sql: string) => (await db.prepare(sql).all()).results;
  const effects = async () => (await rows("SELECT key FROM effects ORDER BY key")).map(({ key }) => key);
  const keys = async () => (await rows("SELECT key FROM redlock_inbox ORDER BY key")).map(({ key }) => key);

  test("the first call commits effect and key, and later ones change nothing", async () => {
    expect(await once("a")).toMatchObject({ first: true, result: [{ results: [{ what: "paid" }] }] });
    expect(await once("a")).toEqual({ first: false });
    expect((await once(["a", "b"], { entity: "e", fence: 1 })).first).toBe(true);
    expect(await effects()).toEqual(["a", "a,b"]);
    expect(await keys()).toEqual(['["a","b"]', '["a"]']);
    expect(await onceInD1(db, { key: "none" }, [])).toEqual({ first: true, result: [] });
  });

  test("a statement of the effect that violates a constraint is not a repetition, and undoes everything", async () => {
    const write = (key: string, sql: string) => onceInD1(db, { key }, [pay(key), db.prepare(sql)]);
    await write("a", "INSERT INTO invoices VALUES ('7')");
    await db.prepare(`INSERT INTO inbox VALUES ('["b"]')`).run();
    for (const sql of [
      "INSERT INTO invoices VALUES ('7')",
      `INSERT INTO inbox VALUES ('["b"]')`,
      // Even one on the inbox itself, whose error is that of a repetition.
      `INSERT INTO redlock_inbox (key) VALUES ('["a"]')`,
    ]) {
      await expect(write("b", sql)).rejects.toThrow(/UNIQUE constraint failed/);
    }
    expect([await effects(), await keys()]).toEqual([["a"], ['["a"]']]);
    expect((await write("b", "INSERT INTO invoices VALUES ('8')")).first).toBe(true);
  });

  test.each([
    ["COMMIT"],
    ["ROLLBACK"],
    ["BEGIN"],
    ["SAVEPOINT s"],
    ["INSERT INTO effects (key, what) VALUES ('b', 'c'); COMMIT"],
    ["INSERT OR ROLLBACK INTO effects (key) VALUES (NULL)"],
  ])("D1 lets no effect end its transaction: %s", async (sql) => {
    await expect(onceInD1(db, { key: "a" }, [pay("a"), db.prepare(sql), pay("b")])).rejects.toThrow();
    expect([await effects(), await keys()]).toEqual([[], []]);
    expect((await once("a")).first).toBe(true);
  });

  test("missing tables: the error says what to apply", async () => {
    await db.prepare("ALTER TABLE redlock_fences RENAME TO elsewhere").run();
    const calls = [once("a"), once("a", { entity: "e", fence: 1 }), prune({ olderThan: 1 })];
    const errors = (await Promise.all(calls.map((call) => outcomeOf<unknown>(call)))).map(
      ({ error }) => error,
    );
    await db.prepare("ALTER TABLE elsewhere RENAME TO redlock_fences").run();
    // Without a fence, the other table is enough.
    expect(errors[0]).toBe(undefined);
    for (const error of errors.slice(1)) expect(String(error)).toMatch(/^Error: .*apply d1Schema/);
  });

  marksContract({
    once,
    fail: (key: string, entry: Omit<InboxEntry, "key">) =>
      onceInD1(db, { key, ...entry }, [db.prepare("INSERT INTO effects (n) VALUES (1)")]),
    effects,
    written: async () => (await rows("SELECT what FROM effects ORDER BY n")).map(({ what }) => Number(what)),
    async stored(entity) {
      const { results } = await db
        .prepare("SELECT fence FROM redlock_fences WHERE entity = ?1")
        .bind(entity)
        .all();
      return Number(results[0]?.fence);
    },
  });

  describe("where D1's answer is lost", () => {
    /** The database, whose batches are carried out or not, and never answered. */
    const losing = (isCarriedOut: boolean, readsWork: boolean) => ({
      prepare(sql: string) {
        if (!readsWork && sql.startsWith("SELECT"))
          return { bind: () => db.prepare("SELECT * FROM unreachable") };
        return db.prepare(sql);
      },
      async batch(statements: D1PreparedStatement[]): Promise<D1Result[]> {
        if (isCarriedOut) await db.batch(statements);
        throw new Error("D1_ERROR: Network connection lost.");
      },
    });

    test("a committed effect is found at once, and not repeated", async () => {
      expect(await onceInD1(losing(true, true), { key: "a" }, [pay("a")])).toEqual({ first: false });
      expect(await effects()).toEqual(["a"]);
    });

    test("one that is not committed is an error, and the next attempt has it", async () => {
      await expect(onceInD1(losing(false, true), { key: "a" }, [pay("a")])).rejects.toThrow(
        /connection lost/,
      );
      expect((await once("a")).first).toBe(true);
    });

    test("one that cannot be asked for is D1's first error, and the next attempt finds it", async () => {
      await expect(onceInD1(losing(true, false), { key: "a" }, [pay("a")])).rejects.toThrow(
        /connection lost/,
      );
      expect(await once("a")).toEqual({ first: false });
      expect(await effects()).toEqual(["a"]);
    });
  });

  test("prune deletes what is older, at most 1 000 rows of each table", async () => {
    await db
      .prepare(`INSERT INTO redlock_inbox (key, at)
        WITH RECURSIVE numbers (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM numbers WHERE i < 1500)
        SELECT 'k' || i, (unixepoch() - 2 * 86400) * 1000 FROM numbers`)
      .run();
    await prune({ olderThan: 86_400_000 });
    expect(await keys()).toHaveLength(500);
    await expect(prune({ olderThan: Number.NaN })).rejects.toThrow(RangeError);
    await expect(prune({ olderThan: 1, limit: 0 })).rejects.toThrow(RangeError);
  });

  test("a wrong entry is refused before anything is sent", async () => {
    const [run] = [pay("a").first()];
    await run;
    await db.prepare("DELETE FROM effects").run();
    for (const [given, entry, effect, message] of [
      [undefined, { key: "a" }, [], /^TypeError: db is missing.*env\.DB/],
      [{ prepare: () => 1 }, { key: "a" }, [], /^TypeError: db/],
      [db, { key: "a" }, undefined, /^TypeError: effect is missing.*array/],
      [db, { key: "a" }, pay("a"), /^TypeError: effect must be an array/],
      [db, { key: "a" }, ["SELECT 1"], /^TypeError: effect\[0\] must be a statement/],
      [db, { key: "a" }, [run], /^TypeError: effect\[0\] .* was not run/],
      [db, undefined, [], /^TypeError: the entry/],
      [db, { key: "a", entity: "a\0b", fence: 1 }, [], /^RangeError: entity .*NUL/],
    ] as [never, never, never, RegExp][]) {
      expect(String((await outcomeOf(onceInD1(given, entry, effect))).error)).toMatch(message);
    }
    expect(await effects()).toEqual([]);
  });
});

// Checked by the compiler; nothing runs.
test("types: D1's own, and the results of the effect", () => {
  const calls = async (db: D1Database) => {
    const outcome = await onceInD1(db, { key: "a" }, [db.prepare("SELECT 1")]);
    if (outcome.first) expectTypeOf(outcome.result).toEqualTypeOf<D1Result<unknown>[]>();
  };
  expect(calls).toBeTypeOf("function");
});
