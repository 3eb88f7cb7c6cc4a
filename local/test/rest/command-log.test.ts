import { describe, expect, test } from "vitest";
import { CommandLog, type LoggedCommand } from "../../src/rest/command-log.ts";

const entry = (...command: string[]): LoggedCommand => ({
  command,
  billed: 1,
  at: 0,
  ms: 0,
  outcome: "ok",
});

describe("the command log", () => {
  test("truncates long arguments and errors, with their length", () => {
    const logged: LoggedCommand[] = [];
    const log = new CommandLog((each) => logged.push(each));
    log.add({ ...entry("SET", "key", "x".repeat(1_000_000)), error: "e".repeat(2_000) });
    const kept = `${"x".repeat(1_000)}… (1000000 characters)`;
    const error = `${"e".repeat(1_000)}… (2000 characters)`;
    expect(log.entries).toMatchObject([{ command: ["SET", "key", kept], error }]);
    expect(logged).toEqual(log.entries);
  });

  test("keeps the first 100 arguments, with the number of others", () => {
    const log = new CommandLog();
    log.add(entry("DEL", ...Array.from({ length: 5_000 }, (_, index) => `key ${index}`)));
    const { command } = log.entries[0]!;
    log.add(entry(...command.slice(0, 100)));
    expect(log.entries[1]!.command).toHaveLength(100);
    expect(command).toHaveLength(101);
    expect(command.slice(-2)).toEqual(["key 98", "… (4901 more)"]);
  });

  test("is trimmed to the last 1 000 commands, a tenth above that", () => {
    const log = new CommandLog();
    for (let index = 1; index <= 1_101; index += 1) log.add(entry(String(index)));
    expect(log.entries).toHaveLength(1_000);
    expect(log.entries[0]!.command).toEqual(["102"]);
    expect(log.billed).toBe(1_101);
  });
});
