import { describe, expect, test } from "vitest";
import { onceInTransaction, pruneInbox } from "../../../src/inbox/index.ts";
import { outcomeOf } from "../../support/outcomes.ts";

// What no database and library of test/inbox does.

test("pruning deletes at most 1 000 rows of each table", async () => {
  const statements: string[] = [];
  await pruneInbox((sql) => statements.push(sql), { olderThan: 86_400_000_000 });
  expect(statements.filter((sql) => sql.includes("LIMIT 1000)"))).toHaveLength(3);
});

test("a MySQL that prepares no savepoint: the check is left out", async () => {
  const execute = async (sql: string) => {
    if (sql.includes("SAVEPOINT"))
      throw Object.assign(new Error("not in the prepared statement protocol"), { errno: 1295 });
    return [{ inserted: 1 }];
  };
  expect(await onceInTransaction(execute, { key: "a" }, { dialect: "mysql" })).toEqual({ first: true });
});

describe("what execute throws", () => {
  const prisma = (code: string) =>
    Object.assign(
      new Error(`\nInvalid invocation:\n\nRaw query failed. Code: \`${code}\`. Message: \`no\``),
      {
        code: "P2010",
      },
    );

  test.each<[string, unknown, RegExp | undefined]>([
    ["Prisma: a missing table", prisma("42P01"), /apply postgresSchema$/],
    ["Prisma: a missing table in MySQL", prisma("1146"), /apply postgresSchema$/],
    ["Prisma: no transaction", prisma("25P01"), /open transaction/],
    ["Prisma: a deadlock", prisma("40P01"), undefined],
    ["a deadlock", Object.assign(new Error("deadlock"), { code: "40P01" }), undefined],
    // As Knex, which puts the values into its message.
    [
      "a deadlock, of a key that reads like an error",
      new Error("42P01 1146 no such table: redlock_inbox; deadlock"),
      undefined,
    ],
    [
      "itself as cause",
      Object.assign(new Error("no"), {
        get cause() {
          return this;
        },
      }),
      undefined,
    ],
  ])("%s", async (_what, thrown, message) => {
    const { error } = await outcomeOf<unknown>(onceInTransaction(() => Promise.reject(thrown), { key: "a" }));
    if (message === undefined) expect(error).toBe(thrown);
    else {
      expect(String(error)).toMatch(message);
      expect(error).toMatchObject({ cause: thrown });
    }
  });
});
