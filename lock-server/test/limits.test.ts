import { expect, test } from "vitest";
import { type CommandResult, LockServer } from "../src/lock-server.ts";
import { objectStorage } from "./storage.ts";

// What a command costs, counted in what it makes the server read.

/** A lock server, and the statements that its storage has executed. */
function lockServer() {
  const statements: string[] = [];
  const server = new LockServer({ storage: objectStorage((query) => statements.push(query)) });
  return {
    /** How many values were read since the last time. */
    reads: () => statements.splice(0).filter((query) => /^SELECT.* value/.test(query)).length,
    async ask(...commands: (string | number)[][]) {
      const body = JSON.stringify(commands);
      const answer = await server.fetch(new Request("https://o/", { method: "POST", body }));
      return (await answer.json()) as CommandResult[];
    },
  };
}

const large = "x".repeat(1_900_000 - 100);

test("what does not depend on a value does not read it", async () => {
  const { ask, reads } = lockServer();
  await ask(["SET", "large", large]);
  reads();
  expect(
    await ask(
      ["EXISTS", "large", "large"],
      ["TYPE", "large"],
      ["PEXPIRE", "large", 3_600_000],
      ["SET", "large", "v", "NX"],
      ["SET", "large", "v", "XX", "KEEPTTL"],
      ["DEL", "large"],
    ),
  ).toEqual([2, "string", 1, null, "OK", 1].map((result) => ({ result })));
  expect(reads()).toBe(0);
});
