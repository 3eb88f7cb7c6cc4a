import { type ConnectionOptions, createConnection } from "mysql2/promise";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Execute, mysqlSchema, onceInTransaction } from "../../src/inbox/index.ts";
import { type Mariadb, mariadbServer, startMariadb } from "../support/mariadb.ts";
import { transactionsContract } from "./transactions-contract.ts";

// On a real MariaDB.

describe.skipIf(mariadbServer === undefined)("the inbox in MySQL and MariaDB", () => {
  let server: Mariadb;
  beforeAll(async () => {
    server = await startMariadb();
    const connection = await createConnection({ uri: server.url, multipleStatements: true });
    // It may be applied again.
    await connection.query(`${mysqlSchema}${mysqlSchema}
      CREATE TABLE done (id TEXT NOT NULL, what VARCHAR(99) NOT NULL, n INT AUTO_INCREMENT PRIMARY KEY)
        CHARACTER SET utf8mb4`);
    await connection.end();
  });
  afterAll(() => server?.close());

  transactionsContract({
    dialect: "mysql",
    url: () => server.url,
    mayRepeat: (error) => Object(error).errno === 1213,
    twoDaysAgo: "UTC_TIMESTAMP(3) - INTERVAL 2 DAY",
  });

  test("keys through connections of another character set, and of another way to escape, are the same", async () => {
    const entered = async (key: string, options: ConnectionOptions, mode = "") => {
      const connection = await createConnection({ uri: server.url, ...options });
      try {
        await connection.query(`SET sql_mode = '${mode}'`);
        await connection.beginTransaction();
        const execute: Execute = (sql, params) => connection.query(sql, params);
        const { first } = await onceInTransaction(
          execute,
          { key, entity: key, fence: 1 },
          { dialect: "mysql" },
        );
        await connection.commit();
        return first;
      } finally {
        await connection.end();
      }
    };
    for (const key of ["evt_🧾", "evt_🎉", "evt_ä", "evt_'x\\"]) {
      expect(await entered(key, { charset: "latin1_swedish_ci" })).toBe(true);
      expect(await entered(key, {})).toBe(false);
      expect(await entered(key, {}, "NO_BACKSLASH_ESCAPES,ANSI_QUOTES")).toBe(false);
    }
  });
});
