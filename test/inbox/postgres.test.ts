import pg from "pg";
import { afterAll, beforeAll, describe, expect, expectTypeOf, test } from "vitest";
import {
  type InboxEntry,
  onceInPostgres,
  postgresSchema,
  pruneInbox,
  type SqlClient,
  TransactionEndedError,
} from "../../src/inbox/index.ts";
import { outcomeOf } from "../support/outcomes.ts";
import { type Postgres, postgresPrograms, startPostgres } from "../support/postgres.ts";
import { countsIn, effectsIn, inboxContract } from "./inbox-contract.ts";
import { transactionsContract } from "./transactions-contract.ts";

// On a real PostgreSQL.

/** A client that does not report what Postgres answered. */
const silent = (client: pg.PoolClient): SqlClient => ({
  query: async (sql, values) => ({ rows: (await client.query(sql, values)).rows }),
  release: (destroy) => client.release(destroy),
});

/** The effect: a row with the key as JSON. */
const write = (key: InboxEntry["key"]) => `INSERT INTO done VALUES ('${JSON.stringify(key)}', 'paid')`;

describe.skipIf(postgresPrograms === undefined)("the inbox in Postgres", () => {
  let server: Postgres;
  let pool: pg.Pool;
  beforeAll(async () => {
    server = await startPostgres();
    pool = new pg.Pool({ connectionString: server.url, max: 20 });
    // Connections that break while they are idle.
    pool.on("error", () => undefined);
    // It may be applied again.
    await pool.query(`${postgresSchema}${postgresSchema}
      CREATE TABLE done (id text NOT NULL, what text NOT NULL, n serial)`);
  });
  afterAll(async () => {
    await pool.end();
    await server.close();
  });

  const twoDaysAgo = "now() - interval '2 days'";
  transactionsContract({ dialect: "postgres", url: () => server.url, mayRepeat: () => false, twoDaysAgo });

  describe("onceInPostgres", () => {
    const inbox = {
      once: (entry: InboxEntry, what: string | null = "paid") =>
        onceInPostgres(pool, entry, async (client: pg.PoolClient) => {
          await client.query("INSERT INTO done VALUES ($1, $2)", [JSON.stringify(entry.key), what]);
          return what;
        }),
      prune: (options: { olderThan: number; limit?: number | undefined }) =>
        pruneInbox((sql, params) => pool.query(sql, params), options),
      query: async (sql: string) => (await pool.query(sql)).rows,
      twoDaysAgo,
    };
    const { once } = inbox;
    inboxContract(inbox);

    test("the first call has the effect's result", async () => {
      expect(await once({ key: "a" })).toEqual({ first: true, result: "paid" });
    });

    test("an effect that violates a constraint of the inbox is not a repetition", async () => {
      await once({ key: "a" });
      const insert = (client: pg.PoolClient) => client.query(`INSERT INTO redlock_inbox VALUES ('["a"]')`);
      await expect(onceInPostgres(pool, { key: "b" }, insert)).rejects.toMatchObject({ code: "23505" });
      expect((await once({ key: "b" })).first).toBe(true);
    });

    describe.each([
      ["pg", (client: pg.PoolClient): SqlClient => client],
      ["a client that does not say what Postgres answered", silent],
    ])("through %s, an effect that", (_client, wrap) => {
      const connect = async () => wrap(await pool.connect());

      test("ignores the error of a failed statement is no success", async () => {
        const call = onceInPostgres({ connect }, { key: "a" }, async (client) => {
          await client.query(write("a"));
          await client.query("INSERT INTO no_such_table VALUES (1)").catch(() => undefined);
        });
        await expect(call).rejects.toThrow(/rolled it back/);
        expect(await countsIn(inbox)).toEqual([0, 0, 0]);
      });

      const [a, b] = [write("a"), write("b")];
      test.each<[end: string, committed: boolean | undefined, statements: string[], cause?: object]>([
        ["COMMIT", true, [a, "COMMIT"]],
        ["COMMIT AND CHAIN", true, [a, "COMMIT AND CHAIN"]],
        ["COMMIT, and writes more in its own one", true, [a, "COMMIT", "BEGIN", b]],
        ["COMMIT, and then fails", true, [a, "COMMIT", "SELECT 1 / 0"], { code: "22012" }],
        ["ROLLBACK", false, [a, "ROLLBACK"]],
        ["ROLLBACK AND CHAIN", false, [a, "ROLLBACK AND CHAIN"]],
        ["ROLLBACK, and begins its own one", false, [a, "ROLLBACK", "BEGIN"]],
        ["PREPARE TRANSACTION", undefined, [a, "PREPARE TRANSACTION 'p'"]],
      ])(
        "ends the transaction by %s is an error that says whether it is committed: %s",
        async (_end, committed, statements, cause) => {
          const entry = { key: "a", entity: "e", fence: 1 };
          const call = onceInPostgres({ connect }, entry, async (client) => {
            for (const sql of statements) await client.query(sql);
          });
          const { error } = await outcomeOf(call);
          expect(error).toBeInstanceOf(TransactionEndedError);
          expect(error).toMatchObject({ code: "TRANSACTION_ENDED", committed, ...(cause && { cause }) });
          expect(pool.totalCount - pool.idleCount).toBe(0);
          if (committed === undefined) await pool.query("ROLLBACK PREPARED 'p'");
          expect(await countsIn(inbox)).toEqual(committed ? [1, 1, 0] : [0, 0, 0]);
          expect(await effectsIn(inbox)).toEqual(committed ? ["a"] : []);
          expect((await once(entry)).first).toBe(!committed);
        },
      );

      test("ends the transaction late, because nobody waits for that, is the same error", async () => {
        for (const end of ["ROLLBACK", "ROLLBACK; BEGIN"]) {
          const call = onceInPostgres({ connect }, { key: "a" }, (client) => {
            // Comes between the check and COMMIT.
            void client.query("SELECT 1").then(() => client.query(end));
          });
          await expect(call).rejects.toMatchObject({ code: "TRANSACTION_ENDED", committed: false });
        }
        expect((await once({ key: "a" })).first).toBe(true);
      });

      test("leaves the transaction as it was may use savepoints, and begin", async () => {
        const call = onceInPostgres({ connect }, { key: "a" }, async (client) => {
          for (const sql of ["BEGIN", "SAVEPOINT s", b, "ROLLBACK TO s", a]) await client.query(sql);
        });
        expect(await call).toEqual({ first: true, result: undefined });
        expect(await effectsIn(inbox)).toEqual(["a"]);
      });
    });

    /** The pool, whose clients do something of their own before or after COMMIT. */
    const around = (query: (client: pg.PoolClient, commit: () => Promise<pg.QueryResult>) => unknown) => {
      const released: (boolean | undefined)[] = [];
      const connect = async (): Promise<SqlClient> => {
        const client = await pool.connect();
        return {
          query: (sql, values) =>
            (sql === "COMMIT" ? query(client, () => client.query(sql)) : client.query(sql, values)) as never,
          release(destroy) {
            released.push(destroy);
            client.release(destroy);
          },
        };
      };
      return { pool: { connect }, released };
    };

    test("a statement that fails so late that only the answer to COMMIT shows it is no success", async () => {
      const late = around(async (client, commit) => {
        await client.query("SELECT 1 / 0").catch(() => undefined);
        return commit();
      });
      await expect(onceInPostgres(late.pool, { key: "a" }, () => 1)).rejects.toThrow(/rolled it back/);
      expect(await countsIn(inbox)).toEqual([0, 0, 0]);
    });

    test("a connection that is cut before COMMIT: no effect, and the next attempt has it", async () => {
      const cut = onceInPostgres(pool, { key: "a" }, async (client: pg.PoolClient) => {
        await client.query(write("a"));
        client.connection.stream.destroy();
      });
      expect((await outcomeOf(cut)).error).toBeDefined();
      expect((await once({ key: "a" })).first).toBe(true);
      expect(await effectsIn(inbox)).toEqual(["a"]);
      expect(pool.totalCount - pool.idleCount).toBe(0);
    });

    test("a connection that loses the answer to COMMIT: an error, and the next attempt finds the effect", async () => {
      const lost = around(async (client, commit) => {
        await commit();
        client.on("error", () => undefined);
        client.connection.stream.destroy();
        throw new Error("the connection has ended");
      });
      const call = onceInPostgres(lost.pool, { key: "a" }, (client) => client.query(write("a")));
      await expect(call).rejects.toThrow("the connection has ended");
      // Nobody knows what it would answer next.
      expect(lost.released).toEqual([true]);
      expect(await once({ key: "a" })).toEqual({ first: false });
      expect(await effectsIn(inbox)).toEqual(["a"]);
    });

    test("a connection is given back after an error of the effect, and usable", async () => {
      const one = new pg.Pool({ connectionString: server.url, max: 1 });
      const pid = async () => (await one.query("SELECT pg_backend_pid() AS pid")).rows[0].pid;
      const before = await pid();
      const failing = onceInPostgres(one, { key: "a" }, (client) => client.query("SELECT 1 / 0"));
      await expect(failing).rejects.toMatchObject({ code: "22012" });
      expect(await onceInPostgres(one, { key: "a" }, () => 1)).toEqual({ first: true, result: 1 });
      expect(await pid()).toBe(before);
      await one.end();
    });
  });
});

// Checked by the compiler; nothing runs.
test("types: the client of the pool, and the result of the effect", () => {
  const calls = async (pool: pg.Pool) => {
    const outcome = await onceInPostgres(pool, { key: "a" }, async (_: pg.PoolClient) => 7);
    expectTypeOf(outcome).toEqualTypeOf<
      { readonly first: true; readonly result: number } | { readonly first: false; readonly stale?: true }
    >();
    // @ts-expect-error a query of a pool would leave the transaction: a pool is not a client
    await onceInPostgres(pool, { key: "a" }, (client: pg.Pool) => client.query("SELECT 1"));
  };
  expect(calls).toBeTypeOf("function");
});
