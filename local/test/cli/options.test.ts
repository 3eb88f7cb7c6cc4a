import { describe, expect, test } from "vitest";
import { parseLine, UsageError } from "../../src/cli/line.ts";
import { commandOptions, commandRequest } from "../../src/cli/options.ts";

const parse = (args: readonly string[]) => commandRequest(parseLine(args, commandOptions));

describe("commandRequest", () => {
  test("has no start options by default", () => {
    expect(parse([])).toEqual({ start: {}, writeEnv: undefined, faults: [], pagePort: 0, log: false });
  });

  test("parses every option", () => {
    const line =
      "--count 2 --engine redis --dialect redis-8.4 --redis redis://a --redis redis://b --host ::1 --port 8000 --token t " +
      "--write-env .dev.vars --log --faults --page-port 8001";
    expect(parse(line.split(" "))).toEqual({
      start: {
        count: 2,
        engine: "redis",
        dialect: "redis-8.4",
        redis: ["redis://a", "redis://b"],
        host: "::1",
        port: 8000,
        token: "t",
        faultsApi: true,
      },
      writeEnv: ".dev.vars",
      faults: [],
      pagePort: 8001,
      log: true,
    });
  });

  test.each([
    ["--down 2", { endpoint: 2, rule: { fault: "down", probability: 1 } }],
    ["--drop-reply 3=0.25", { endpoint: 3, rule: { fault: "drop-reply", probability: 0.25 } }],
    ["--delay 2=1000", { endpoint: 2, rule: { fault: "delay", ms: 1000 } }],
    ["--delay-reply 2=10-500", { endpoint: 2, rule: { fault: "delay-reply", ms: [10, 500] } }],
    ["--drop-message 1=0.5", { endpoint: 1, rule: { fault: "drop-message", probability: 0.5 } }],
    ["--status 1", { endpoint: 1, rule: { fault: "status", status: 500 } }],
    ["--status 1=503", { endpoint: 1, rule: { fault: "status", status: 503 } }],
  ])("parses %s", (line, fault) => {
    expect(parse(line.split(" "))).toMatchObject({ faults: [fault] });
  });

  test.each([
    ["--page-port 65535", { pagePort: 65_535 }],
    ["--page-port 80 --no-page", { pagePort: undefined }],
  ])("takes %s", (line, request) => {
    expect(parse(line.split(" "))).toMatchObject(request);
  });

  test.each([
    ["--env-file .dev.vars", "Unknown option '--env-file'"],
    ["extra", "Unexpected argument 'extra'"],
    ["--coutn 3", "Unknown option '--coutn'; did you mean --count?"],
    ["--bogus", "Unknown option '--bogus'; there are --count, "],
    ["--count", "'--count"],
    ["--count three", "'three'"],
    ["--port -1", "--port"],
    ["--page-port 65536", "--page-port is 0 … 65535"],
    ["--engine mysql", "'mysql'"],
    ["--dialect mysql", '--dialect must be "upstash", "redis-8.4" or "redis", got mysql'],
    ["--delay 2", "--delay 2=1000"],
    ["--delay 2=soon", "'soon'"],
    ["--down two", "'two'"],
    ["--log=yes", "--log"],
  ])("refuses '%s' in one line", (line, message) => {
    let failure: unknown;
    try {
      parse(line.split(" ").filter(Boolean));
    } catch (error) {
      failure = error;
    }
    expect(failure).toBeInstanceOf(UsageError);
    expect((failure as Error).message).toContain(message);
    expect((failure as Error).message).not.toContain("\n");
  });
});
