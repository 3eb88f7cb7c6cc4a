import { describe, expect, test } from "vitest";
import { onceInTransaction } from "../../../src/inbox/index.ts";
import { outcomeOf } from "../../support/outcomes.ts";

// What libraries return and throw; test/inbox runs them on real databases.

describe("what execute returns", () => {
  test.each<[string, unknown, boolean]>([
    ["an array of rows", [{ inserted: 1 }], true],
    ["no row in it", [], false],
    ["rows that are arrays", [[1]], true],
    ["{ rows }", { rows: [{ inserted: 1 }] }, true],
    ["no row in { rows }", { rows: [] }, false],
    ["[rows, fields]", [[{ inserted: 1 }], [{ name: "inserted" }]], true],
    ["no row in [rows, fields]", [[], [{ name: "inserted" }]], false],
  ])("%s", async (_what, result, first) => {
    for (const dialect of ["postgres", "mysql", "sqlite"] as const) {
      expect(await onceInTransaction(() => result, { key: "a" }, { dialect })).toEqual({ first });
    }
  });

  test.each([[undefined], [null], [1], [{}], [{ rows: 1 }], [{ affectedRows: 1 }]])(
    "%j is no row",
    async (result) => {
      const call = onceInTransaction(() => result, { key: "a" }, { dialect: "sqlite" });
      await expect(call).rejects.toThrow(/^what execute resolves with .*rows/);
    },
  );
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
  const wrapped = (cause: object) =>
    new Error("Failed query", { cause: Object.assign(new Error("no"), cause) });

  test.each<[string, unknown, RegExp | undefined]>([
    ["Prisma: a missing table", prisma("42P01"), /apply postgresSchema$/],
    ["Prisma: a missing table in MySQL", prisma("1146"), /apply postgresSchema$/],
    ["Prisma: no transaction", prisma("25P01"), /open transaction/],
    ["Prisma: a deadlock", prisma("40P01"), undefined],
    ["Drizzle: a missing table", wrapped({ code: "42P01" }), /apply postgresSchema$/],
    [
      "Drizzle: a missing table in MySQL",
      wrapped({ code: "ER_NO_SUCH_TABLE", errno: 1146 }),
      /apply postgresSchema$/,
    ],
    ["Drizzle: syntax", wrapped({ code: "42601" }), /option dialect/],
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
