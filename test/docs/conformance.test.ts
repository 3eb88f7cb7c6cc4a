import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { answersOf, columnIn, columns, redisVersion, tableOf } from "../../scripts/conformance-columns.ts";

// The table of docs/platforms.md. test/durable compares the column of the lock server.

const page = readFileSync("docs/platforms.md", "utf8");

describe.concurrent("docs/platforms.md has what doctor --conformance finds", () => {
  const compared = columns.filter(
    ({ title, isRedis }) => title !== "lock server" && !(isRedis && redisVersion !== "7.0"),
  );
  for (const { title, open } of compared) {
    test(`at ${title}`, async () => {
      const { options, close } = await open();
      try {
        expect(columnIn(page, title)).toEqual(await answersOf(options));
      } finally {
        await close();
      }
    });
  }

  test("and what happens without it", () => {
    const [, , ...rows] = tableOf([]);
    const ends = page.split("\n").map((line) => line.replace(/ \| .*(?= \| )/, ""));
    expect(rows.filter((row) => !ends.includes(row))).toEqual([]);
  });
});
