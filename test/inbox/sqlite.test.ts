import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient, type InValue } from "@libsql/client";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { d1Schema, onceInD1, StaleFenceError } from "../../src/inbox/index.ts";
import { outcomeOf } from "../support/outcomes.ts";
import { transactionsContract } from "./transactions-contract.ts";

describe("the inbox in libSQL", () => {
  const folder = mkdtempSync(join(tmpdir(), "redlock-edge-libsql-"));
  const url = `file:${join(folder, "test.db")}`;
  beforeAll(async () => {
    const client = createClient({ url });
    // It may be applied again.
    await client.executeMultiple(`PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; ${d1Schema}${d1Schema}
      CREATE TABLE done (id TEXT NOT NULL, what TEXT NOT NULL, n INTEGER PRIMARY KEY)`);
    client.close();
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  transactionsContract({
    dialect: "sqlite",
    url: () => url,
    mayRepeat: (error) => /SQLITE_BUSY/.test(String(error)),
    twoDaysAgo: "(unixepoch() - 2 * 86400) * 1000",
  });

  // The adapter that docs/inbox.md leads to.
  test("by batches of onceInD1", async () => {
    const client = createClient({ url: ":memory:" });
    await client.executeMultiple(d1Schema);
    const bound = (sql: string, args: InValue[]) => ({
      sql,
      args,
      first: async () => (await client.execute({ sql, args })).rows[0],
    });
    const db = {
      prepare: (sql: string) => ({ bind: (...args: InValue[]) => bound(sql, args) }),
      batch: (statements: ReturnType<typeof bound>[]) => client.batch(statements, "write"),
    };
    const once = async (key: string, fence: number, version: number) =>
      onceInD1(db, { key, entity: "e", fence, version }, []);
    expect(await once("a", 2, 2)).toEqual({ first: true, result: [] });
    expect(await once("a", 2, 2)).toEqual({ first: false });
    expect(await once("b", 2, 1)).toEqual({ first: false, stale: true });
    expect((await outcomeOf(once("c", 1, 3))).error).toBeInstanceOf(StaleFenceError);
    client.close();
  });
});
