import type { D1Database, D1PreparedStatement, D1Result } from "@cloudflare/workers-types";
import { Miniflare } from "miniflare";
import { afterAll, beforeAll, describe, expect, expectTypeOf, test } from "vitest";
import { d1Schema, type InboxEntry, onceInD1, pruneInbox } from "../../src/inbox/index.ts";
import { databaseWorker } from "../../tools/local-database.mjs";
import { outcomeOf } from "../support/outcomes.ts";
import { countsIn, effectsIn, inboxContract } from "./inbox-contract.ts";

// On D1 in workerd.

describe("the inbox in D1", () => {
  let worker: Miniflare;
  let db: D1Database;
  beforeAll(async () => {
    const reader = databaseWorker({ compatibilityDate: "2026-04-01", d1Databases: ["DB"] });
    worker = new Miniflare({ workers: [reader.worker], cf: false, telemetry: { enabled: false } });
    db = (await reader.open(worker)) as unknown as D1Database;
    const effects = "CREATE TABLE done (id TEXT NOT NULL, what TEXT NOT NULL, n INTEGER PRIMARY KEY)";
    // The schema may be applied again.
    const statements = `${d1Schema}${d1Schema}${effects}`.split(";").filter((text) => text.trim());
    for (const statement of statements) await db.prepare(statement).run();
  });
  afterAll(() => worker.dispose());

  const pay = (key: InboxEntry["key"], what: string | null = "paid") =>
    db.prepare("INSERT INTO done (id, what) VALUES (?1, ?2) RETURNING what").bind(JSON.stringify(key), what);
  const inbox = {
    once: (entry: InboxEntry, what?: string | null) => onceInD1(db, entry, [pay(entry.key, what)]),
    prune: (options: { olderThan: number; limit?: number | undefined }) =>
      pruneInbox(
        (sql, params) =>
          db
            .prepare(sql)
            .bind(...params)
            .run(),
        { ...options, dialect: "sqlite" },
      ),
    query: async (sql: string) => (await db.prepare(sql).all()).results,
    twoDaysAgo: "(unixepoch() - 2 * 86400) * 1000",
  };
  const { once, prune, query } = inbox;
  inboxContract(inbox);

  test("the first call has the results of the effect's statements", async () => {
    expect(await once({ key: "a" })).toMatchObject({
      first: true,
      result: [{ results: [{ what: "paid" }] }],
    });
    expect(await onceInD1(db, { key: "none" }, [])).toEqual({ first: true, result: [] });
  });

  test.each([
    // Its error is that of a repetition.
    [`INSERT INTO redlock_inbox (key) VALUES ('["a"]')`],
    ["COMMIT"],
  ])(
    "an effect that violates a constraint of the inbox, or ends its transaction, undoes all: %s",
    async (sql) => {
      await once({ key: "a" });
      await expect(onceInD1(db, { key: "b" }, [pay("b"), db.prepare(sql), pay("c")])).rejects.toThrow();
      expect(await effectsIn(inbox)).toEqual(["a"]);
      expect((await once({ key: "b" })).first).toBe(true);
    },
  );

  test("missing tables: the error says what to apply", async () => {
    await query("ALTER TABLE redlock_fences RENAME TO elsewhere");
    const calls = [once({ key: "a" }), once({ key: "a", entity: "e", fence: 1 }), prune({ olderThan: 1 })];
    const outcomes = await Promise.all(calls.map((call) => outcomeOf<unknown>(call)));
    await query("ALTER TABLE elsewhere RENAME TO redlock_fences");
    // Without a fence, the other table is enough.
    const [without, ...errors] = outcomes.map(({ error }) => error);
    expect(without).toBe(undefined);
    for (const error of errors) expect(String(error)).toMatch(/^Error: .*apply d1Schema/);
  });

  test.each<[what: string, isCarriedOut: boolean, readsWork: boolean, isFound: boolean]>([
    ["committed is found at once", true, true, true],
    ["not committed is an error", false, true, false],
    ["committed, but cannot be asked for, is an error", true, false, false],
  ])(
    "where D1's answer is lost, an effect that is %s, and not repeated",
    async (_what, isCarriedOut, readsWork, isFound) => {
      const losing = {
        prepare: (sql: string) =>
          db.prepare(readsWork || !sql.startsWith("SELECT") ? sql : "SELECT ?1 FROM unreachable"),
        async batch(statements: D1PreparedStatement[]): Promise<D1Result[]> {
          if (isCarriedOut) await db.batch(statements);
          throw new Error("D1_ERROR: Network connection lost.");
        },
      };
      const { error, value } = await outcomeOf(onceInD1(losing, { key: "a" }, [pay("a")]));
      if (isFound) expect(value).toEqual({ first: false });
      else expect(String(error)).toMatch(/connection lost/);
      expect((await once({ key: "a" })).first).toBe(!isCarriedOut);
      expect(await effectsIn(inbox)).toEqual(["a"]);
    },
  );

  test("a wrong entry is refused before anything is sent", async () => {
    const run = db.prepare("SELECT 1").first();
    for (const [given, entry, effect, message] of [
      [undefined, { key: "a" }, [], /^TypeError: db is missing.*env\.DB/],
      [{ prepare: () => 1 }, { key: "a" }, [], /^TypeError: db/],
      [db, { key: "a" }, undefined, /^TypeError: effect is missing.*array/],
      [db, { key: "a" }, pay("a"), /^TypeError: effect must be an array/],
      [db, { key: "a" }, [pay("a"), "SELECT 1"], /^TypeError: effect\[1\] must be a statement/],
      [db, { key: "a" }, [run], /^TypeError: effect\[0\] .* was not run/],
      [db, undefined, [], /^TypeError: the entry/],
    ] as [never, never, never, RegExp][]) {
      expect(String((await outcomeOf(onceInD1(given, entry, effect))).error)).toMatch(message);
    }
    expect(await countsIn(inbox)).toEqual([0, 0, 0]);
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
