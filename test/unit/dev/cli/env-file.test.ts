import { expect, test } from "vitest";
import { parseVariables, withVariables } from "../../../../src/dev/cli/env-file.ts";

test("parseVariables() reads what .env and .dev.vars files have", () => {
  const text = [
    "# comment",
    'A="quoted # no comment"',
    "B='single'  # comment",
    "export C=exported",
    "D = spaced # comment",
    "E=",
    'F="unfinished',
    "G=a=b",
    "  H=`x`\r",
    "no variable",
    "1X=no name",
  ].join("\n");
  expect(parseVariables(text)).toEqual({
    A: "quoted # no comment",
    B: "single",
    C: "exported",
    D: "spaced",
    E: "",
    F: '"unfinished',
    G: "a=b",
    H: "x",
  });
});

test("withVariables() replaces all variables of endpoints, in any form, and keeps every other line", () => {
  const before = [
    "A=1",
    "",
    'UPSTASH_REDIS_REST_URL="http://old"',
    "export UPSTASH_REDIS_REST_TOKEN_7=old",
    "UPSTASH_REDIS_REST_URL_EU=http://kept",
    "# UPSTASH_REDIS_REST_URL_1=http://kept",
    "",
    "",
  ].join("\n");
  expect(withVariables(before, [["UPSTASH_REDIS_REST_URL_1", "http://new"]])).toBe(
    [
      "A=1",
      "",
      "UPSTASH_REDIS_REST_URL_EU=http://kept",
      "# UPSTASH_REDIS_REST_URL_1=http://kept",
      'UPSTASH_REDIS_REST_URL_1="http://new"',
      "",
    ].join("\n"),
  );
  expect(withVariables("", [["A", "b"]])).toBe('A="b"\n');
});
