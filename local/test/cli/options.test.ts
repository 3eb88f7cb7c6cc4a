import { describe, expect, test } from "vitest";
import { parseLine, UsageError } from "../../src/cli/line.ts";
import { commandOptions, commandRequest } from "../../src/cli/options.ts";

const parse = (args: readonly string[]) => commandRequest(parseLine(args, commandOptions));

describe("commandRequest", () => {
  test("has no start options by default", () => {
    expect(parse([])).toEqual({ start: {}, writeEnv: undefined, down: [], pagePort: 0, log: false });
  });

  test("parses every option", () => {
    const line =
      "--count 2 --engine redis --dialect redis-8.4 --redis redis://a --redis redis://b --host ::1 --port 8000 --token t " +
      "--write-env .dev.vars --log --faults --down 2 --page-port 8001";
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
      down: [2],
      pagePort: 8001,
      log: true,
    });
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
