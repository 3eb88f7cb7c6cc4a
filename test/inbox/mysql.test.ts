import { createConnection } from "mysql2/promise";
import { afterAll, beforeAll, describe } from "vitest";
import { mysqlSchema } from "../../src/inbox/index.ts";
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
});
