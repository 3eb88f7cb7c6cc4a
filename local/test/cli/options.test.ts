import { describe, expect, test } from "vitest";
import { integer, parseLine, UsageError } from "../../src/cli/options.ts";

const parse = (args: readonly string[]) => {
  const { port = "0", ...others } = parseLine(args);
  return { ...others, port: integer("--port", port, 65_535) };
};

describe("a command line", () => {
  test.each([
    ["--env-file .dev.vars", "Unknown option '--env-file'"],
    ["extra", "Unexpected argument 'extra'"],
    ["--coutn 3", "Unknown option '--coutn'; did you mean --count?"],
    ["--bogus", "Unknown option '--bogus'; there are --count, "],
    ["--count", "'--count"],
    ["--port three", "'three'"],
    ["--port -1", "--port"],
    ["--port 65536", "up to 65535, not '65536'"],
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
