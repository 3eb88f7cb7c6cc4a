import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { answersIn, answersOf, columns, redisVersion, tablesOf } from "../../evidence/conformance/columns.ts";

// The tables of docs/platforms.md. test/durable compares what it says of the lock server.

const page = readFileSync("docs/platforms.md", "utf8");

describe.concurrent("docs/platforms.md has what doctor --conformance finds", () => {
  const compared = columns.filter(
    ({ title, isRedis }) => title !== "lock server" && !(isRedis && redisVersion !== "7.0"),
  );
  for (const { title, open } of compared) {
    test(`at ${title}`, async () => {
      const { options, close } = await open();
      try {
        expect(answersIn(page, title)).toEqual(await answersOf(options));
      } finally {
        await close();
      }
    });
  }

  test("and all that it asks for", () => {
    expect(page).toContain(tablesOf([]).split("\n\n")[0]);
  });
});
