import { expect, test } from "vitest";
import { type CommandResult, LockServer } from "../src/lock-server.ts";
import { LockServerObject, Refusal } from "../src/object.ts";
import { namespaceOf, type Objects, objectStorage } from "./storage.ts";

// How much one request may ask for, counted in what it makes the server do.

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

test("more commands or words than a request may have are refused, and nobody is asked", async () => {
  const objects: Objects = new Map();
  const object = new LockServerObject(namespaceOf(objects));
  const commands = (count: number, words: number) =>
    Array.from({ length: count }, () => ["EXISTS", ...Array.from({ length: words - 1 }, () => "k")]);
  for (const given of [commands(10_001, 2), commands(1, 100_001), commands(9_091, 11)]) {
    const refused = await object.execute(given).catch((error) => error);
    expect(refused).toBeInstanceOf(Refusal);
    expect(refused).toMatchObject({ status: 413, message: expect.stringMatching(/nothing was executed/) });
  }
  expect(objects.size).toBe(0);
  const most = [["PING", ...Array.from({ length: 90_000 }, () => "k")], ...commands(9_999, 1)];
  expect(await object.execute(most)).toHaveLength(10_000);
});

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
