import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "@libsql/client";
import { afterAll, beforeAll, describe } from "vitest";
import { d1Schema } from "../../src/inbox/index.ts";
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
});
