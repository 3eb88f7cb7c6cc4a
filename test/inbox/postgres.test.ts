import { readFileSync } from "node:fs";
import pg from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, expectTypeOf, test } from "vitest";
import {
  type InboxEntry,
  onceInPostgres,
  onceInTransaction,
  postgresSchema,
  type SqlClient,
  TransactionEndedError,
} from "../../src/inbox/index.ts";
import { outcomeOf } from "../support/outcomes.ts";
import { type Postgres, postgresPrograms, startPostgres } from "../support/postgres.ts";
import { transactionsContract } from "./transactions-contract.ts";

// On a real PostgreSQL: what onceInPostgres adds to onceInTransaction. The effect of these tests is a row in `effects`, which
// two effects of a delivery would double.

/** A client that does not report what Postgres answered. */
const silent = (client: pg.PoolClient): SqlClient => ({
  query: async (sql, values) => ({ rows: (await client.query(sql, values)).rows }),
  release: (destroy) => client.release(destroy),
});

describe.skipIf(postgresPrograms === undefined)("the inbox in Postgres", () => {
  let server: Postgres;
  let pool: pg.Pool;
  beforeAll(async () => {
    server = await startPostgres();
    pool = new pg.Pool({ connectionString: server.url, max: 20 });
    // Connections that break while they are idle.
    pool.on("error", () => undefined);
    await pool.query(postgresSchema);
    // It may be applied again.
    await pool.query(postgresSchema);
    await pool.query(`CREATE TABLE effects (key text NOT NULL, what text NOT NULL, n serial);
      CREATE TABLE done (id text NOT NULL, what text NOT NULL, n serial);
      CREATE TABLE invoices (number text PRIMARY KEY);
      CREATE TABLE inbox (key text PRIMARY KEY)`);
  });
  afterAll(async () => {
    await pool.end();
    await server.close();
  });
  beforeEach(() =>
    pool
      .query("TRUNCATE redlock_inbox, redlock_fences, redlock_versions, effects, invoices, inbox")
      .then(() => undefined),
  );

  const once = (key: InboxEntry["key"], entry?: Omit<InboxEntry, "key">, what = "paid") =>
    onceInPostgres(pool, { key, ...entry }, async (client: pg.PoolClient) => {
      await client.query("INSERT INTO effects VALUES ($1, $2)", [[key].flat().join(), what]);
      return what;
    });
  const rows = async (sql: string, values: unknown[] = []) => (await pool.query(sql, values)).rows;
  const effects = async () => (await rows("SELECT key FROM effects ORDER BY key")).map(({ key }) => key);
  const keys = async () => (await rows("SELECT key FROM redlock_inbox ORDER BY key")).map(({ key }) => key);

  test("a statement of the effect that violates a constraint is not a repetition", async () => {
    const write = (key: string, sql: string) => onceInPostgres(pool, { key }, (client) => client.query(sql));
    await write("a", "INSERT INTO invoices VALUES ('7'); INSERT INTO inbox VALUES ('[\"b\"]')");
    for (const sql of [
      "INSERT INTO invoices VALUES ('7')",
      "INSERT INTO inbox VALUES ('[\"b\"]')",
      // Even one on the inbox itself.
      `INSERT INTO redlock_inbox VALUES ('["a"]')`,
    ]) {
      const { error } = await outcomeOf(write("b", sql));
      expect(error).toMatchObject({ code: "23505" });
    }
    expect(await keys()).toEqual(['["a"]']);
    expect((await write("b", "INSERT INTO invoices VALUES ('8')")).first).toBe(true);
  });

  test("a failed statement whose error the effect ignores is no success", async () => {
    const write = (wrap: (client: pg.PoolClient) => SqlClient) =>
      onceInPostgres({ connect: async () => wrap(await pool.connect()) }, { key: "a" }, async (client) => {
        await client.query("INSERT INTO effects VALUES ('a', 'paid')");
        await client.query("INSERT INTO no_such_table VALUES (1)").catch(() => undefined);
      });
    await expect(write((client) => client)).rejects.toThrow(/rolled it back/);
    await expect(write(silent)).rejects.toMatchObject({ cause: { code: "25P02" } });
    // One that fails as late as that is not awaited, so only the answer to COMMIT shows it.
    const late = (client: pg.PoolClient): SqlClient => ({
      async query(sql, values) {
        if (sql === "COMMIT") await client.query("SELECT 1 / 0").catch(() => undefined);
        return client.query(sql, values);
      },
      release: (destroy) => client.release(destroy),
    });
    await expect(
      onceInPostgres({ connect: async () => late(await pool.connect()) }, { key: "a" }, () => 1),
    ).rejects.toThrow(/rolled it back/);
    expect([await effects(), await keys()]).toEqual([[], []]);
  });

  describe.each([
    ["pg", (client: pg.PoolClient): SqlClient => client],
    ["a client that does not say what Postgres answered", silent],
  ])("an effect that ends the transaction itself, through %s", (_client, wrap) => {
    /** Runs the statements as an effect with a key of its own, and tells what is in the tables then. */
    const run = async (key: string, ...statements: string[]) => {
      const connect = async () => wrap(await pool.connect());
      const { error, value } = await outcomeOf(
        onceInPostgres({ connect }, { key, entity: key, fence: 1 }, async (client) => {
          for (const sql of statements) await client.query(sql);
        }),
      );
      const [fenced] = await rows("SELECT count(*)::int AS n FROM redlock_fences WHERE entity = $1", [key]);
      expect(pool.totalCount - pool.idleCount).toBe(0);
      return { error, value, left: [(await keys()).includes(`["${key}"]`), fenced.n === 1, await effects()] };
    };
    const write = (key: string) => `INSERT INTO effects VALUES ('${key}', 'paid')`;

    test.each([["COMMIT"], ["END"], ["COMMIT AND CHAIN"], ["COMMIT", "BEGIN"]])(
      "%s: it counts as done, and the error says so",
      async (...end) => {
        const { error, left } = await run("a", write("a"), ...end);
        expect(error).toBeInstanceOf(TransactionEndedError);
        expect(error).toMatchObject({
          code: "TRANSACTION_ENDED",
          name: "TransactionEndedError",
          committed: true,
        });
        expect(left).toEqual([true, true, ["a"]]);
        expect(await once("a")).toEqual({ first: false });
      },
    );

    test.each([["ROLLBACK"], ["ABORT"], ["ROLLBACK AND CHAIN"], ["ROLLBACK", "BEGIN"]])(
      "%s: it is not done, and the next attempt has the effect",
      async (...end) => {
        const { error, left } = await run("a", write("a"), ...end);
        expect(error).toBeInstanceOf(TransactionEndedError);
        expect(error).toMatchObject({ committed: false });
        expect(left).toEqual([false, false, []]);
        expect((await once("a")).first).toBe(true);
      },
    );

    test("what it writes afterwards in a transaction of its own is undone", async () => {
      const { error, left } = await run("a", write("a"), "COMMIT", "BEGIN", write("b"));
      expect(error).toMatchObject({ committed: true });
      expect(left).toEqual([true, true, ["a"]]);
    });

    test("and then fails: the error is that the key is committed, and its cause is the failure", async () => {
      const { error, left } = await run("a", "COMMIT", "SELECT 1 / 0");
      expect(error).toMatchObject({ committed: true, cause: { code: "22012" } });
      expect(left).toEqual([true, true, []]);
    });

    test("late, because nobody waits for it", async () => {
      for (const end of ["ROLLBACK", "ROLLBACK; BEGIN"]) {
        const outcome = await outcomeOf(
          onceInPostgres({ connect: async () => wrap(await pool.connect()) }, { key: "a" }, (client) => {
            // Comes between the check and COMMIT.
            void client.query("SELECT 1").then(() => client.query(end));
          }),
        );
        expect(outcome.error).toBeInstanceOf(TransactionEndedError);
        expect(outcome.error).toMatchObject({ committed: false });
      }
      expect((await once("a")).first).toBe(true);
    });

    test("PREPARE TRANSACTION: nobody knows yet", async () => {
      const { error } = await run("a", write("a"), "PREPARE TRANSACTION 'p'");
      expect(error).toBeInstanceOf(TransactionEndedError);
      expect(error).toMatchObject({ committed: undefined });
      await pool.query("ROLLBACK PREPARED 'p'");
      expect((await once("a")).first).toBe(true);
    });

    test("what leaves the transaction as it was is allowed", async () => {
      const { error, value, left } = await run(
        "a",
        "BEGIN",
        "SAVEPOINT s",
        write("b"),
        "ROLLBACK TO s",
        write("a"),
      );
      expect([error, value]).toEqual([undefined, { first: true, result: undefined }]);
      expect(left).toEqual([true, true, ["a"]]);
    });
  });

  transactionsContract({
    dialect: "postgres",
    url: () => server.url,
    mayRepeat: () => false,
    twoDaysAgo: "now() - interval '2 days'",
  });

  test.each(["repeatable read", "serializable"])(
    "onceInTransaction under %s: one fails, and may be called again",
    async (level) => {
      const client = await pool.connect();
      await client.query(`BEGIN ISOLATION LEVEL ${level}`);
      await client.query("SELECT 1");
      await once("a", { entity: "e", fence: 1, version: 1 });
      const late = onceInTransaction((sql, params) => client.query(sql, params), { key: "a" });
      await expect(late).rejects.toMatchObject({ code: "40001" });
      await client.query("ROLLBACK");
      await client.query(`BEGIN ISOLATION LEVEL ${level}`);
      const again = onceInTransaction((sql, params) => client.query(sql, params), { key: "a" });
      expect(await again).toEqual({ first: false });
      await client.query("COMMIT");
      client.release();
    },
  );

  describe("a connection", () => {
    test("that is cut between effect and COMMIT: no effect, and the next attempt has it", async () => {
      const cut = onceInPostgres(pool, { key: "a" }, async (client: pg.PoolClient) => {
        await client.query("INSERT INTO effects VALUES ('a', 'paid')");
        client.connection.stream.destroy();
      });
      expect((await outcomeOf(cut)).error).toBeDefined();
      expect(await once("a")).toEqual({ first: true, result: "paid" });
      expect(await effects()).toEqual(["a"]);
      expect(pool.totalCount - pool.idleCount).toBe(0);
    });

    test("that loses the answer to COMMIT: an error, and the next attempt finds the effect", async () => {
      const released: (boolean | undefined)[] = [];
      let isCut = false;
      const connect = async (): Promise<SqlClient> => {
        const client = await pool.connect();
        return {
          async query(sql, values) {
            if (isCut) throw new Error("not connected");
            const result = await client.query(sql, values);
            if (sql !== "COMMIT") return result;
            isCut = true;
            throw new Error("the connection has ended");
          },
          release(destroy) {
            released.push(destroy);
            client.release(destroy);
          },
        };
      };
      const lost = onceInPostgres({ connect }, { key: "a" }, (client) =>
        client.query("INSERT INTO effects VALUES ('a', 'paid')"),
      );
      await expect(lost).rejects.toThrow("the connection has ended");
      // Nobody knows what it would answer next.
      expect(released).toEqual([true]);
      expect(await once("a")).toEqual({ first: false });
      expect(await effects()).toEqual(["a"]);
    });

    test("is given back after an error of the effect, and usable", async () => {
      const one = new pg.Pool({ connectionString: server.url, max: 1 });
      const pid = async () => (await one.query("SELECT pg_backend_pid() AS pid")).rows[0].pid;
      const before = await pid();
      const failing = onceInPostgres(one, { key: "a" }, (client) => client.query("SELECT 1 / 0"));
      await expect(failing).rejects.toMatchObject({ code: "22012" });
      expect(await onceInPostgres(one, { key: "a" }, () => 1)).toEqual({ first: true, result: 1 });
      expect(await onceInPostgres(one, { key: "a" }, () => 1)).toEqual({ first: false });
      expect(await pid()).toBe(before);
      await one.end();
    });
  });

  // RUNS=15 kills it as often, and prints how many calls failed, and how many of those had committed.
  const kills = Number(process.env.RUNS ?? 1);
  test("a server that is killed while transactions commit: after its restart every effect is there once", {
    timeout: 60_000 * kills,
  }, async () => {
    const counts = { succeeded: 0, failed: 0, "failed, but committed": 0 };
    for (let kill = 0; kill < kills; kill += 1) {
      const all = Array.from({ length: 150 }, (_, index) => `${kill}-${index}`);
      const succeeded = new Map<string, boolean>();
      const work = all.map(async (key) => {
        succeeded.set(key, (await outcomeOf(once(key))).error === undefined);
      });
      while (succeeded.size < 40 + 5 * kill) await new Promise((resolve) => setTimeout(resolve, 1));
      await server.kill();
      await Promise.all(work);
      await server.restart();
      // What was reported as committed is; what failed may be, and only the table knows.
      for (const [key, ok] of succeeded) {
        const { first } = await once(key);
        expect(ok && first).toBe(false);
        counts[ok ? "succeeded" : "failed"] += 1;
        if (!ok && !first) counts["failed, but committed"] += 1;
      }
      expect(await effects()).toEqual(expect.arrayContaining(all));
    }
    expect(await effects()).toHaveLength(150 * kills);
    expect([counts.succeeded > 0, counts.failed > 0]).toEqual([true, true]);
    if (kills > 1) console.info(counts);
  });

  test("the statements of examples/d1-fence refuse an older holder", async () => {
    const page = readFileSync(new URL("../../examples/d1-fence/README.md", import.meta.url), "utf8");
    const [, claim = "", write = ""] = /```sql\n(UPDATE .*);\n(UPDATE .*);\n```/.exec(page) ?? [];
    await pool.query(
      "CREATE TABLE accounts (id text PRIMARY KEY, balance bigint NOT NULL, fence bigint NOT NULL DEFAULT 0)",
    );
    await pool.query("INSERT INTO accounts VALUES ('a', 10)");
    const [older, newer] = [Date.now(), Date.now() + 1];
    expect((await pool.query(claim, ["a", older])).rows).toEqual([{ balance: "10" }]);
    expect((await pool.query(claim, ["a", newer])).rows).toEqual([{ balance: "10" }]);
    expect((await pool.query(claim, ["a", older])).rows).toEqual([]);
    expect((await pool.query(write, ["a", older, 3])).rowCount).toBe(0);
    expect((await pool.query(write, ["a", newer, 7])).rowCount).toBe(1);
    expect(await rows("SELECT balance FROM accounts")).toEqual([{ balance: "7" }]);
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
