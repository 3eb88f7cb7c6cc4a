import { createRequire } from "node:module";
import type { SqlStorage } from "../../src/durable/keyspace.ts";

interface Database {
  prepare(sql: string): {
    readonly reader: boolean;
    all(...values: unknown[]): Record<string, unknown>[];
    run(...values: unknown[]): void;
  };
}

// A part of `@libsql/client`: SQLite that answers at once, as that of a Durable Object does.
const Sqlite = createRequire(createRequire(import.meta.url).resolve("@libsql/client"))("libsql") as new (
  path: string,
) => Database;

/** SQLite in memory, as a Durable Object has it. */
export function sqlStorage(): SqlStorage {
  const database = new Sqlite(":memory:");
  return {
    exec(query, ...values) {
      const statement = database.prepare(query);
      // In workerd it is executed at once as well.
      const rows = statement.reader ? statement.all(...values) : [];
      if (!statement.reader) statement.run(...values);
      return { toArray: () => rows };
    },
  };
}
