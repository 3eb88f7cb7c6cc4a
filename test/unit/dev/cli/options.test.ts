import { describe, expect, test } from "vitest";
import { parseCommandLine, UsageError } from "../../../../src/dev/cli/options.ts";

describe("parseCommandLine", () => {
  test("has no start options by default", () => {
    expect(parseCommandLine(["dev"])).toEqual({ start: {}, envFile: undefined, faults: [], log: false });
  });

  test("parses every option", () => {
    const line =
      "dev --count 2 --engine redis --redis redis://a --redis redis://b --host ::1 --port 8000 --token t " +
      "--env-file .dev.vars --log --faults --lua-time-limit 250";
    expect(parseCommandLine(line.split(" "))).toEqual({
      start: {
        count: 2,
        engine: "redis",
        redis: ["redis://a", "redis://b"],
        host: "::1",
        port: 8000,
        token: "t",
        faultsApi: true,
        luaTimeLimit: 250,
      },
      envFile: ".dev.vars",
      faults: [],
      log: true,
    });
  });

  test.each([
    ["--down 2", { endpoint: 2, rule: { fault: "down", probability: 1 } }],
    ["--drop-request=1", { endpoint: 1, rule: { fault: "drop-request", probability: 1 } }],
    ["--drop-reply 3=0.25", { endpoint: 3, rule: { fault: "drop-reply", probability: 0.25 } }],
    ["--reorder 1", { endpoint: 1, rule: { fault: "reorder", probability: 1 } }],
    ["--duplicate 1", { endpoint: 1, rule: { fault: "duplicate", probability: 1 } }],
    ["--delay 2=1000", { endpoint: 2, rule: { fault: "delay", ms: 1000 } }],
    ["--delay-reply 2=10-500", { endpoint: 2, rule: { fault: "delay-reply", ms: [10, 500] } }],
    ["--status 1=503", { endpoint: 1, rule: { fault: "status", status: 503 } }],
  ])("parses %s", (line, fault) => {
    expect(parseCommandLine(["dev", ...line.split(" ")])).toMatchObject({ faults: [fault] });
  });

  test("collects several faults", () => {
    const parsed = parseCommandLine(["dev", "--down", "1", "--down", "2", "--delay", "3=1"]);
    expect(parsed).toMatchObject({ faults: [{ endpoint: 1 }, { endpoint: 2 }, { endpoint: 3 }] });
  });

  test.each([
    ["", "a command is missing"],
    ["serve", "unknown command 'serve'"],
    ["dev extra", "unexpected argument 'extra'"],
    ["dev --bogus", "Unknown option '--bogus'"],
    ["dev --count", "'--count"],
    ["dev --count three", "'three'"],
    ["dev --port -1", "--port"],
    ["dev --engine mysql", "'mysql'"],
    ["dev --delay 2", "--delay 2=1000"],
    ["dev --delay 2=soon", "'soon'"],
    ["dev --down two", "'two'"],
    ["dev --log=yes", "--log"],
  ])("refuses '%s' in one line", (line, message) => {
    let failure: unknown;
    try {
      parseCommandLine(line.split(" ").filter(Boolean));
    } catch (error) {
      failure = error;
    }
    expect(failure).toBeInstanceOf(UsageError);
    expect((failure as Error).message).toContain(message);
    expect((failure as Error).message).not.toContain("\n");
  });
});
