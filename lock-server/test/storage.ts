import { createRequire } from "node:module";
import type { Sql } from "../src/engine/sql-storage.ts";
import { LockServer, type LockServerNamespace, type LockServerState } from "../src/index.ts";

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
export function sqlStorage(): Sql {
  const database = new Sqlite(":memory:");
  const statements = new Map<string, ReturnType<Database["prepare"]>>();
  return {
    exec(query, ...values) {
      const statement = statements.get(query) ?? database.prepare(query);
      statements.set(query, statement);
      // In workerd it is executed at once as well.
      const rows = statement.reader ? statement.all(...values) : [];
      if (!statement.reader) statement.run(...values);
      return { toArray: () => rows };
    },
  };
}

/** The storage of a Durable Object, in memory, with the alarms that were set. */
export function objectStorage(): LockServerState["storage"] & {
  readonly alarms: readonly number[];
  /** The alarm that was set has fired. */
  clearAlarm(): void;
} {
  const sql = sqlStorage();
  const alarms: number[] = [];
  let alarm: number | null = null;
  return {
    sql,
    alarms,
    clearAlarm() {
      alarm = null;
    },
    transactionSync<Result>(run: () => Result): Result {
      sql.exec("SAVEPOINT command");
      try {
        return run();
      } catch (error) {
        sql.exec("ROLLBACK TO command");
        throw error;
      } finally {
        sql.exec("RELEASE command");
      }
    },
    getAlarm: async () => alarm,
    async setAlarm(time: number) {
      alarms.push(time);
      alarm = time;
    },
  };
}

/** The objects of one class, by their ids. */
export type Objects = Map<string, LockServer>;

/**
 * The binding of a lock server in this process. workerd has no jurisdictions: here they are a part of an object's id, as on
 * Cloudflare.
 */
export function namespaceOf(objects: Objects): LockServerNamespace {
  const within = (jurisdiction?: string): LockServerNamespace => ({
    idFromName: (name) => ({ name, jurisdiction, toString: () => `${jurisdiction ?? "anywhere"}/${name}` }),
    get: (id) => ({
      fetch(url, init) {
        const at = String(id);
        const object = objects.get(at) ?? new LockServer({ storage: objectStorage() });
        objects.set(at, object);
        return object.fetch(new Request(url, init));
      },
    }),
    jurisdiction: (jurisdiction) => within(jurisdiction),
  });
  return within();
}
