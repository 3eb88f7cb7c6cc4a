import { expect, test } from "vitest";
import { CommandLog, type LoggedCommand } from "../../src/rest/command-log.ts";

const entry = (...command: string[]): LoggedCommand => ({ command, billed: 1, at: 0, ms: 0, outcome: "ok" });

test("the log has the beginnings of long commands and errors, and says how much was cut", () => {
  const logged: LoggedCommand[] = [];
  const log = new CommandLog((each) => logged.push(each));
  log.add({ ...entry("SET", "key", "x".repeat(1_000_000)), error: "e".repeat(2_000) });
  const kept = `${"x".repeat(1_000)}… (1000000 characters)`;
  const error = `${"e".repeat(1_000)}… (2000 characters)`;
  expect(log.entries).toMatchObject([{ command: ["SET", "key", kept], error }]);
  expect(logged).toEqual(log.entries);
  log.add(entry("DEL", ...Array.from({ length: 5_000 }, (_, index) => `key ${index}`)));
  const { command } = log.entries[1]!;
  expect([command.length, ...command.slice(-2)]).toEqual([101, "key 98", "… (4901 more)"]);
});

test("the log has the last 1 000 commands, and counts all", () => {
  const log = new CommandLog();
  for (let index = 1; index <= 1_101; index += 1) log.add(entry(String(index)));
  expect([log.entries.length, log.entries[0]!.command, log.billed]).toEqual([1_000, ["102"], 1_101]);
});
