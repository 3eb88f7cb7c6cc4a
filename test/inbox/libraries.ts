import { createClient } from "@libsql/client";
import { type SQL, sql as template } from "drizzle-orm";
import { drizzle as drizzleLibsql } from "drizzle-orm/libsql";
import { drizzle as drizzleMysql } from "drizzle-orm/mysql2";
import { drizzle as drizzlePg } from "drizzle-orm/node-postgres";
import knex from "knex";
import { CompiledQuery, type Dialect, Kysely, MysqlDialect, PostgresDialect } from "kysely";
import mysqlCallbacks from "mysql2";
import mysql from "mysql2/promise";
import pg from "pg";
import postgres from "postgres";
import { DataSource } from "typeorm";
import type { Execute } from "../../src/inbox/index.ts";

/** A library that runs transactions. */
export interface Library {
  /** Runs `work` in a transaction, which is rolled back if it fails. */
  transaction<Value>(work: (execute: Execute) => Promise<Value>): Promise<Value>;
  /** Runs a statement outside of transactions. */
  readonly execute: Execute;
  close(): Promise<unknown>;
}

// The lines `(sql, params) => …` are what docs/inbox.md shows.

/** Drizzle's template, whose values stand between the pieces. */
const drizzleOf = (sql: string, params: readonly string[]): SQL =>
  template(sql.split(/\$\d|\?/) as never, ...params);

/** Runs one transaction on a connection of a pool. */
async function inTransaction<Value>(
  connection: { query(sql: string): Promise<unknown>; release(): void },
  work: () => Promise<Value>,
): Promise<Value> {
  try {
    await connection.query("BEGIN");
    const value = await work();
    await connection.query("COMMIT");
    return value;
  } catch (error) {
    await connection.query("ROLLBACK");
    throw error;
  } finally {
    connection.release();
  }
}

function onPg(url: string): Library {
  const pool = new pg.Pool({ connectionString: url, max: 20 });
  return {
    async transaction(work) {
      const client = await pool.connect();
      return inTransaction(client, () => work((sql, params) => client.query(sql, params)));
    },
    execute: (sql, params) => pool.query(sql, params),
    close: () => pool.end(),
  };
}

function onMysql2(url: string, prepares = false): Library {
  const pool = mysql.createPool({ uri: url, connectionLimit: 20 });
  return {
    async transaction(work) {
      const client = await pool.getConnection();
      return inTransaction(client, () =>
        work((sql, params) => (prepares ? client.execute(sql, params) : client.query(sql, params))),
      );
    },
    execute: (sql, params) => pool.query(sql, params),
    close: () => pool.end(),
  };
}

/** One transaction after another: on a file, libSQL's client does not recover where one finds another one open. */
function inTurns(library: Library): Library {
  let last: Promise<unknown> = Promise.resolve();
  const transaction: Library["transaction"] = (work) => {
    const next = last.then(() => library.transaction(work));
    last = next.catch(() => undefined);
    return next;
  };
  return { ...library, transaction };
}

function onLibsql(url: string): Library {
  const client = createClient({ url });
  return inTurns({
    async transaction(work) {
      const transaction = await client.transaction("write");
      try {
        const value = await work((sql, args) => transaction.execute({ sql, args }));
        await transaction.commit();
        return value;
      } finally {
        transaction.close();
      }
    },
    execute: (sql, params) => client.execute(sql, params),
    close: async () => client.close(),
  });
}

function onKysely(dialect: Dialect): Library {
  const db = new Kysely<unknown>({ dialect });
  return {
    transaction: (work) =>
      db
        .transaction()
        .execute((trx) => work((sql, params) => trx.executeQuery(CompiledQuery.raw(sql, params)))),
    execute: (sql, params) => db.executeQuery(CompiledQuery.raw(sql, params)),
    close: () => db.destroy(),
  };
}

function onKnex(client: "pg" | "mysql2", connection: string): Library {
  const db = knex({ client, connection });
  return {
    transaction: (work) =>
      db.transaction((trx) => work((sql, params) => trx.raw(sql.replace(/\$\d/g, "?"), params))),
    execute: (sql, params) => db.raw(sql.replace(/\$\d/g, "?"), params),
    close: () => db.destroy(),
  };
}

async function onTypeorm(type: "postgres" | "mysql", url: string): Promise<Library> {
  const source = await new DataSource({ type, url }).initialize();
  return {
    transaction: (work) => source.transaction((manager) => work((sql, params) => manager.query(sql, params))),
    execute: (sql, params) => source.query(sql, params),
    close: () => source.destroy(),
  };
}

function onPostgresJs(url: string): Library {
  const db = postgres(url, { onnotice: () => undefined });
  return {
    transaction: (work) => db.begin((tx) => work((sql, params) => tx.unsafe(sql, params))) as never,
    execute: (sql, params) => db.unsafe(sql, params),
    close: () => db.end(),
  };
}

function onDrizzlePg(url: string): Library {
  const db = drizzlePg(url);
  return {
    transaction: (work) => db.transaction((tx) => work((sql, params) => tx.execute(drizzleOf(sql, params)))),
    execute: (sql, params) => db.execute(drizzleOf(sql, params)),
    close: () => db.$client.end(),
  };
}

function onDrizzleMysql(url: string): Library {
  const pool = mysql.createPool(url);
  const db = drizzleMysql(pool);
  return {
    transaction: (work) => db.transaction((tx) => work((sql, params) => tx.execute(drizzleOf(sql, params)))),
    execute: (sql, params) => db.execute(drizzleOf(sql, params)),
    close: () => pool.end(),
  };
}

function onDrizzleLibsql(url: string): Library {
  const db = drizzleLibsql(url);
  return {
    transaction: (work) => db.transaction((tx) => work((sql, params) => tx.all(drizzleOf(sql, params)))),
    execute: (sql, params) => db.all(drizzleOf(sql, params)),
    close: async () => db.$client.close(),
  };
}

type Libraries = readonly [name: string, open: (url: string) => Library | Promise<Library>][];

export const libraries: Readonly<Record<"postgres" | "mysql" | "sqlite", Libraries>> = {
  postgres: [
    ["pg", onPg],
    ["postgres.js", onPostgresJs],
    ["Drizzle", onDrizzlePg],
    ["Kysely", (url) => onKysely(new PostgresDialect({ pool: new pg.Pool({ connectionString: url }) }))],
    ["Knex", (url) => onKnex("pg", url)],
    ["TypeORM", (url) => onTypeorm("postgres", url)],
  ],
  mysql: [
    ["mysql2", (url) => onMysql2(url)],
    ["mysql2 with prepared statements", (url) => onMysql2(url, true)],
    ["Drizzle", onDrizzleMysql],
    ["Kysely", (url) => onKysely(new MysqlDialect({ pool: mysqlCallbacks.createPool(url) }))],
    ["Knex", (url) => onKnex("mysql2", url)],
    ["TypeORM", (url) => onTypeorm("mysql", url)],
  ],
  sqlite: [
    ["libSQL", onLibsql],
    ["Drizzle", onDrizzleLibsql],
  ],
};
